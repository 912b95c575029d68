"""The gateway's own state at the edge of the tree: its branches are mounted here, and told on."""
