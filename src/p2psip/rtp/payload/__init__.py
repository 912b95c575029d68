"""RTP payload formats, one module per format (RFC 3551 and its successors)."""
