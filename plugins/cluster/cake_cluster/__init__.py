"""Synchronisation of the CTAs of a cluster."""
