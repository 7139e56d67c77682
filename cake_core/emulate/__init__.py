"""Executes PTX without a GPU, from an artifact alone: what `cake run --on cpu` does."""
