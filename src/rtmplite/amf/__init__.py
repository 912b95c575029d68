"""Action Message Format: the values Flash-era peers exchange (AMF0 §2)."""
