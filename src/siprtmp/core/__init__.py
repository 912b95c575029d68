"""The gateway without sockets: what it serves, composed from settings and surroundings."""
