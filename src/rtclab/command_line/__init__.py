"""What the commands share: their arguments, and the files that these name."""
