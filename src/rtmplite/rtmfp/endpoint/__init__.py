"""All sessions of one socket, and how they are opened: RFC 7016 §3.5.1."""
