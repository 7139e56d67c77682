"""Tensor memory and the tensor engine that works on it (PTX ISA, TensorCore 5th Generation Family Instructions)."""
