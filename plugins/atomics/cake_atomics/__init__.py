"""Reads and writes of memory in one step."""
