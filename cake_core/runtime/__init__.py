"""The GPU runtime: loads an artifact and launches it through the CUDA driver. Needs no parser, no plugin and no solver."""
