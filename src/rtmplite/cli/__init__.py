"""The commands of the program `rtmplite`."""
