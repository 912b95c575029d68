"""Conference rooms: phones and streams that hear each other."""
