"""Copies and reductions of contiguous bytes by the asynchronous proxy, without tensor maps."""
