"""Proof that a kernel is free of deadlock, race and phase error for all sizes that its `require`s admit: docs/proof.md."""
