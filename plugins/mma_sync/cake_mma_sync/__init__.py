"""Matrix products of a warp, and the loads of their factors from shared memory."""
