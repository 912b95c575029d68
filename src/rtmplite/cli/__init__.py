"""The commands of `python -m rtmplite`."""
