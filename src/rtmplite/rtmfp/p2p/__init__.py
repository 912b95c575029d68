"""Streams from client to client, and relays between them: RFC 7425 §5.4."""
