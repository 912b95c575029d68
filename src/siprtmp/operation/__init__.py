"""Settings and logs."""
