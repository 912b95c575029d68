"""The user agent: calls, registrations, and the digest of a client.  RFC 3261 §8 to §15."""
