"""The sockets of media: port pairs, their public addresses, relays, keys, and who the peer is."""
