"""SIP codecs: messages, headers and URIs as pure functions and values (RFC 3261 §7, §19, §20)."""
