"""Programmatic dependent launch: grids of one stream that overlap."""
