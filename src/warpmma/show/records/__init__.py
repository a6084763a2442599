"""Cards and pages of records."""
