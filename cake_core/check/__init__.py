"""The first checks of a derived kernel: resources, arrivals and bytes, groups in flight.

They read the derived form alone, so they hold for what the compiler derived and for what a person wrote. Each is a plain
function from a subject to findings; proofs over all schedules are not among them, and what is not analysed is said so.
"""

from __future__ import annotations

from cake_core.architecture import Architecture
from cake_core.check import barriers, groups, meetings, registers, shared, tensor, warps
from cake_core.check.subject import Subject
from cake_core.diagnostics import Diagnostic, Sink
from cake_core.ir.nodes import Kernel

CHECKS = (warps.check, shared.check, tensor.check, registers.check, barriers.check, meetings.check, groups.check)


def check(kernel: Kernel, registry, arch: Architecture) -> list[Diagnostic]:
    """All findings about an elaborated derived-form kernel, in the order of the checks."""
    subject = Subject(kernel, registry, arch)
    sink = Sink()
    for one in CHECKS:
        with sink.collecting():
            one(subject, sink)
    return sink.items
