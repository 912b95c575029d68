"""What the cases of WHIP, WHEP and ICE share: a page that begins sessions, and its offers."""
