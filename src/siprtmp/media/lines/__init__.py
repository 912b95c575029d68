"""How the lines of a description say what pictures both ends take."""
