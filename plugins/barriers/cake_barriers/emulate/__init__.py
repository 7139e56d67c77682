"""How the instructions for barriers, elections and fences are executed without a GPU: written from the PTX ISA and apart from lowering."""
