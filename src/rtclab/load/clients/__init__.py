"""The clients of a load: each plays, publishes, calls or registers once, and tells its tally."""
