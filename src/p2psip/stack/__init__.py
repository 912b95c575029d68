"""A SIP element's transport and transaction layers: RFC 3261 §17 and §18."""
