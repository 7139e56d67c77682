"""Acts in words, with the barriers and buffers that their addresses name."""

from __future__ import annotations

from cake_core.facts.schema import Facts
from cake_core.frozen import frozen
from cake_core.ptx.acts import ADDED, COORDINATE, LANE, READ, THREADS, WINDOW, WRITTEN, Act, rank_of
from cake_core.reread.areas import area_of
from cake_core.reread.threads import COLUMNS


@frozen
class Names:
    """`base`: where the plan starts in each CTA's shared memory."""

    facts: Facts
    base: int

    def barrier(self, address: int) -> str:
        offset = (address & (1 << WINDOW) - 1) - self.base
        for b in self.facts.barriers.values():
            if b.offset <= offset < b.offset + b.bytes and (offset - b.offset) % 8 == 0:
                return f"'{b.name}[{(offset - b.offset) // 8}]'{self._of(address)}"
        return f"byte {offset} of the plan, where no barrier is{self._of(address)}"

    def buffer(self, address: int) -> str:
        offset = (address & (1 << WINDOW) - 1) - self.base
        for b in self.facts.buffers.values():
            for slot in range(len(b.cells) // (b.slot_bytes or 1)):
                cells = range(b.cells.start + slot * b.slot_bytes, b.cells.start + (slot + 1) * b.slot_bytes)
                if offset in cells:
                    behind = f" from byte {offset - cells.start} on" if offset > cells.start else ""
                    return f"slot {slot} of '{b.name}'{behind}{self._of(address)}"
        return f"byte {offset} of the plan{self._of(address)}"

    def resource(self, act: Act) -> tuple[str, str] | None:
        """The barrier that an act names and its index."""
        address = act.at if act.what in ("init", "wait", "arrive") else act.parts[0][0] if act.parts else None
        if address is None:
            return None
        offset = (address & (1 << WINDOW) - 1) - self.base
        return next(((b.name, str((offset - b.offset) // 8)) for b in self.facts.barriers.values() if b.offset <= offset < b.offset + b.bytes), None)

    def _use(self, act: Act) -> str:
        _, first, end = act.parts[0]
        if act.name.startswith(COORDINATE):
            return f"takes {first} .. {end} for {act.name}"
        form = f" as {', '.join(act.form)}" if act.form else ""
        for how, verb in ((READ, "reads"), (ADDED, "adds to"), (WRITTEN, "writes")):
            if act.name.startswith(how):
                _, rows, _, width = area_of(act)
                lane, column = first >> LANE & 0xFF, (first & (1 << LANE) - 1) - COLUMNS
                where = f"columns {column} .. {column + width} of lanes {lane} .. {lane + rows} of tensor memory"
                return f"{verb} {where}{act.name.removeprefix(how)}{form}{self._of(first)}"
        end = f" up to byte {(end & (1 << WINDOW) - 1) - self.base} of the plan"
        if act.name == THREADS and act.form != ("misaligned",):
            form = ""
        return f"accesses {self.buffer(first)}{end}{form}" if act.name == THREADS else f"gives '{act.name}' {self.buffer(first)}{end}{form}"

    def _of(self, address: int) -> str:
        return f" of CTA {rank_of(address)}" if self.facts.cluster > 1 else ""

    def said(self, act: Act) -> str:
        match act.what:
            case "init":
                return f"starts {self.barrier(act.at)} with {act.number} arrivals a phase"
            case "wait":
                return f"waits at {self.barrier(act.at)} for the phase of parity {act.number}"
            case "arrive":
                more = f" and expects {act.number} bytes" if act.number else ""
                return f"arrives at {self.barrier(act.at)}{more}" + (f" with {act.name}" if act.name else "")
            case "copy":
                to = " and ".join(f"{self.buffer(lo)}, told to {self.barrier(b)}" for b, lo, _ in act.parts[:2])
                form = f" as {', '.join(act.form)}" if act.form else ""
                return f"copies {act.number} bytes to {to}{form}"
            case "engine arrives":
                return f"lets '{act.name}' arrive at " + " and ".join(self.barrier(b) for b, _, _ in act.parts)
            case "uses":
                return self._use(act)
            case "commit":
                return f"closes a group of '{act.name}'"
            case "wait for groups" | "wait for reads":
                return f"waits until at most {act.number} groups of '{act.name}' " + (
                    "have still to read" if act.what == "wait for reads" else "are in flight"
                )
            case "meet":
                return f"meets {act.number} threads at barrier {act.at}"
            case "come":
                return f"comes to barrier {act.at} of {act.number} threads and goes on"
            case "fence":
                return f"has a fence of kind '{act.name}'"
            case "take columns" | "give back columns":
                return f"{act.what.replace('take', 'takes').replace('give', 'gives')}: {act.number}"
            case "wait for grids":
                return "waits for the grids in front"
            case "let grids start":
                return "lets the grid behind start"
            case "word":
                return f"asks for '{act.name} {act.number}'"
        return {"come to the cluster": "comes to the cluster's barrier", "wait for the cluster": "waits at the cluster's barrier"}.get(
            act.what, f"lets lanes {act.number:08x} of its warp meet"
        )
