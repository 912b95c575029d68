"""Memory and hosts: what one peer may take of the whole server."""
