"""SIP elements above the transactions: user agents, registrar, proxy (RFC 3261 §8, §10, §16)."""
