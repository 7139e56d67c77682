"""The command line. `main` is the console script; commands are modules beside this one, imported when they run."""

from __future__ import annotations

import gc


def main() -> None:
    """Run `cake` with the process's arguments and exit with its code (see `cake --help`)."""
    from cake_core.cli.app import app

    try:
        app.main(prog_name="cake")
    finally:
        gc.freeze()  # the interpreter would look through all there is and take solvers apart; the system takes it back at once
