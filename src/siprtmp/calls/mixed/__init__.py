"""Both sides of a call together, and what its publisher says, for players and recordings."""
