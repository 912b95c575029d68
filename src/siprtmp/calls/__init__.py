"""Calls of rich clients and of stock tools."""
