"""The NVIDIA Blackwell data-centre architecture (compute capability 10.0) as a target of Cake."""
