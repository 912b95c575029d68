"""The gateway's own state in the tree: calls, streams, rooms, phones, trunks and routes."""
