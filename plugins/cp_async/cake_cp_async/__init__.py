"""Asynchronous copies of threads from global to shared memory, and their groups."""
