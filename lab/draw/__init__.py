"""Pictures and pages of the documentation."""
