"""A referee for traces of SIP: which message should have been sent, and when."""
