"""Takes protocols out of those that carry them: of HTTP, of WebSockets, of TURN."""
