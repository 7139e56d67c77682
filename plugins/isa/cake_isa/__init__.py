"""The instructions of PTX that belong to no family: what they do, for executing a kernel without a GPU."""
