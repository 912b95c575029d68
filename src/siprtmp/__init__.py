"""A gateway that makes a phone call of a stream, and a stream of a phone call."""

__version__ = "0.1.0"
