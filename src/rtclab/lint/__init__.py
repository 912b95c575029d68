"""Judges captures: what the ends of a call, stream or session did against their specifications."""
