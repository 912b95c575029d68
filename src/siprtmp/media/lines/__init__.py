"""How the lines of a description say what video both ends take."""
