"""setmaxnreg as it is executed without a GPU, apart from lowering (PTX ISA, Miscellaneous Instructions: setmaxnreg).

Registers have no number here: what is executed is the pool of the CTA. A thread enters with what `.maxnreg` says, or with an equal share of the 65536
registers of a multiprocessor for as many CTAs as `.minnctapersm` asks for; where neither stands there the assembler ignores the instruction
(ptxas, C7508), and so does this.
"""

from __future__ import annotations

from cake_core.ptx.emulated import Coder, Cta, Lanes, Step, Wait
from cake_core.ptx.forms import Words
from cake_core.ptx.reader import Statement

FILE, LEAST, MOST = 65536, 24, 256
_KEY = ("registers", "pool")


class Pool:
    """`entry`: registers of a thread at its start, None where the instruction has no effect; `counts`: of each warp by now; `free`: what has been
    given back, in registers of one thread of each of a warp's 32 lanes."""

    def __init__(self, entry: int | None) -> None:
        self.entry = entry
        self.counts: dict[int, int] = {}
        self.turns: dict[int, int] = {}  # how often each warp has executed it
        self.free = 0

    def of(self, warp: int) -> int:
        return self.counts.get(warp, self.entry or 0)

    def behind(self, warp: int, warps: int) -> int | None:
        """A warp of its warpgroup that has executed it less often."""
        group = range(warp // 4 * 4, min(warp // 4 * 4 + 4, warps))
        return next((w for w in group if self.turns.get(w, 0) < self.turns.get(warp, 0)), None)

    def ended(self, cta: Cta) -> list[str]:
        """Warpgroups of which a part only has executed the instruction, or not with the same number."""
        told = []
        for group in sorted({w // 4 for w in self.counts}):
            numbers = {w: self.of(w) for w in range(4 * group, min(4 * group + 4, -(-cta.threads // 32)))}
            if len(set(numbers.values())) > 1:
                listed = ", ".join(f"warp {w}: {n}" for w, n in numbers.items())
                told.append(f"the warps of warpgroup {group} do not have the same number of registers ({listed}); all four execute setmaxnreg")
        return told


def entry_registers(directives: tuple[str, ...], threads: int) -> int | None:
    """Registers of a thread at its start, as far as directives fix it."""
    numbers = {}
    for directive in directives:
        name, *values = directive.replace(",", " ").split()
        numbers[name] = values
    if ".maxnreg" in numbers:
        return int(numbers[".maxnreg"][0])
    if ".minnctapersm" not in numbers:
        return None
    warps = -(-threads // 32)
    return min(FILE // (int(numbers[".minnctapersm"][0]) * 32 * warps), 255) // 8 * 8


def setmaxnreg(s: Statement, c: Coder) -> Step:
    """`.inc` waits until the pool has what it asks for, `.dec` gives back."""
    w = Words(s, c)
    way = w.need("inc", "dec")
    w.need("sync"), w.need("aligned"), w.need("u32")
    w.end()
    number = c.constant(s.operands[0])
    if number is None:
        raise c.unsupported("setmaxnreg of what is no immediate")
    legal = LEAST <= number <= MOST and number % 8 == 0
    c.meets(None)

    def step(lanes: Lanes) -> Wait | None:
        if not legal:
            raise lanes.fault("emulate/operand", f"setmaxnreg of {number} registers", why=f"PTX ISA: a multiple of 8 from {LEAST} to {MOST}")
        cta, warp = lanes.cta, lanes.warp
        pool = cta.state(_KEY, lambda: Pool(entry_registers(cta.launch.directives, cta.threads)))
        if pool.entry is None:
            return None
        if (other := pool.behind(warp, -(-cta.threads // 32))) is not None:
            lanes.finding(
                "emulate/operand",
                f"warp {warp} executes setmaxnreg again, and warp {other} of its warpgroup has not executed the one before",
                why="PTX ISA, setmaxnreg: all warps of the warpgroup synchronise before they execute the next one",
            )
        have = pool.of(warp)
        if (number > have) if way == "dec" else (number < have):
            raise lanes.fault(
                "emulate/operand",
                f"setmaxnreg.{way} to {number} registers in a warp that has {have}",
                why="PTX ISA, setmaxnreg: .dec takes a number that is not above what the warp has, .inc one that is not below",
            )
        if way == "inc" and number - have > pool.free:
            return lanes.wait(
                lambda: number - pool.of(warp) <= pool.free, f"{number - have} registers a thread more; the CTA's pool has {pool.free} free"
            )
        pool.free += have - number
        pool.counts[warp] = number
        pool.turns[warp] = pool.turns.get(warp, 0) + 1
        return None

    return step
