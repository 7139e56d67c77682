"""The NVIDIA Ampere architecture (compute capability 8.0) as a target of Cake."""
