"""Votes of the lanes of a warp."""
