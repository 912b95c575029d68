"""Streams pushed to and pulled from other servers."""
