"""`python -m cake_core` is `cake`."""

from cake_core.cli import main

main()
