"""What the rules see in a capture, and what they say of it: packets, findings and ladders."""
