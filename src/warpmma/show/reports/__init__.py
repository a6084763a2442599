"""Reports on launches, modules and errors."""
