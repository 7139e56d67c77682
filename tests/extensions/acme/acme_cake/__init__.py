"""Ada GPUs and fused activations for Cake."""
