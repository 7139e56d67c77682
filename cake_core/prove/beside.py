"""The other core: a copy of this process that proves a part of what is asked at once, and what is asked of addresses.

Both do the same in the same order and tell each other what they have proved, level by level, so an answer does not depend on which of them
found it. A copy that fails, or that no one can make, leaves its part to be asked here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from cake_core.frozen import thawed


def cores() -> int:
    """How many a proof may use: `CAKE_CORES`, or those that this process may run on. More than two are no use to it."""
    given = os.environ.get("CAKE_CORES", "")
    if given.isdigit():
        return max(1, min(int(given), 2))
    return min(len(os.sched_getaffinity(0)), 2) if hasattr(os, "sched_getaffinity") else 1


@thawed
class Beside:
    """One end of the line between two processes. `half`: 0 in the process that asks, 1 in its copy."""

    half: int
    line: socket.socket
    child: int = 0  # its process, at the asking end
    _read: Any = None

    @staticmethod
    def start(work: Callable[[Beside], None]) -> Beside | None:
        """Make a copy of this process that does `work` and ends; None where none can be made."""
        if not hasattr(os, "fork"):
            return None
        here, there = socket.socketpair()
        try:
            child = os.fork()
        except OSError:
            here.close()
            there.close()
            return None
        if child:
            there.close()
            return Beside(0, here, child)
        with contextlib.suppress(BaseException):  # whatever it is, the other end sees a line that is closed
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends its copy
            here.close()
            work(Beside(1, there))
        os._exit(0)  # no buffer of the process that it was copied from is written twice

    def exchange(self, kind: str, mine: list) -> list | None:
        """What the other end has found, for what was found here; None: it has gone, or speaks of something else."""
        if self.half:
            self.tell(kind, mine)
            return self.hear(kind)
        found = self.hear(kind)
        self.tell(kind, mine)
        return found

    def tell(self, kind: str, what: list) -> None:
        with contextlib.suppress(OSError):
            self.line.sendall(json.dumps([kind, what]).encode() + b"\n")

    def hear(self, kind: str) -> list | None:
        """The next thing told; None: the other end has gone, or speaks of something else."""
        if self._read is None:
            self._read = self.line.makefile("rb")
        try:
            told, what = json.loads(self._read.readline())
        except (OSError, ValueError):
            return None
        return what if told == kind else None

    def close(self) -> None:
        """End the copy."""
        self.line.close()
        if self.child:
            with contextlib.suppress(OSError):
                os.kill(self.child, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(self.child, 0)
            self.child = 0
