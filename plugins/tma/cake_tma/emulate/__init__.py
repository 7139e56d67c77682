"""How copies by tensor maps are executed without a GPU: written from the PTX ISA and the CUDA driver API, and apart from lowering."""
