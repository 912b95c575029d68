"""The packet pump: the usual packets of calls in C, where it is compiled."""
