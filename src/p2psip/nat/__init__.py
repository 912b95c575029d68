"""Ways through address translators: what the network calls us, and relays."""
