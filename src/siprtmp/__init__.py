"""A gateway that makes a phone call of a stream, and a stream of a phone call."""

from p2psip.compiled import obey_environment

obey_environment(__path__)

__version__ = "0.1.0"
