"""Calls between a browser and a phone, whose media pass through the gateway."""
