"""tcgen05 as the PTX ISA has it, for those who execute PTX without a GPU.

No device with this engine was at hand. Each function cites its section, and descriptors and layouts one independent source besides; what only figures
show and no second source says is refused.
"""
