"""The table of settings, its readers, and what is generated from it."""
