"""Live streams: one publisher, many players; independent of the protocol they use."""
