"""Registrar, proxy and the digest of a server: RFC 3261 §10, §16 and §22."""
