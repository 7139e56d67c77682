"""The NVIDIA Hopper architecture (compute capability 9.0) as a target of Cake."""
