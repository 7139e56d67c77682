"""What a run of emulated code found, and how it ends early."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_core.frozen import frozen


@frozen
class Finding:
    """One thing that is wrong, at a line of the PTX (from 1; 0: none). `who`: of which CTA and warp, in words."""

    code: str
    message: str
    line: int = 0
    who: str = ""
    why: str | None = None
    fix: str | None = None


class Fault(Exception):
    """Ends the run."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Unsupported(Exception):
    """An instruction, or a form of one, that nobody executes: `line` of the PTX, `opcode`, and what of it is not covered."""

    def __init__(self, line: int, opcode: str, why: str) -> None:
        super().__init__(f"line {line}: '{opcode}': {why}")
        self.line, self.opcode, self.why = line, opcode, why


#: Findings that a run keeps; one line tells a thing once.
MOST = 20


@dataclass(slots=True)
class Findings:
    """Each (code, line) once. `beyond`: those that are counted and not kept."""

    found: dict[tuple[str, int], Finding] = field(default_factory=dict)
    beyond: set[tuple[str, int]] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        key = finding.code, finding.line
        if key in self.found:
            return
        if len(self.found) >= MOST:
            self.beyond.add(key)
            return
        self.found[key] = finding

    def __iter__(self):
        return iter(self.found.values())
