"""One session and its flows: RFC 7016 §3.5 and §3.6."""
