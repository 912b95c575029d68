"""Load on a running server: many clients, what came of them, and where the server breaks."""
