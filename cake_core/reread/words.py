"""Acts in words, with the barriers and buffers that their addresses name."""

from __future__ import annotations

from cake_core.facts.schema import Facts
from cake_core.frozen import frozen
from cake_core.ptx.acts import COORDINATE, THREADS, WINDOW, Act, rank_of


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
                return f"copies {act.number} bytes to {to}"
            case "engine arrives":
                return f"lets '{act.name}' arrive at " + " and ".join(self.barrier(b) for b, _, _ in act.parts)
            case "uses" if act.name.startswith(COORDINATE):
                return f"takes {act.parts[0][1]} for {act.name}"
            case "uses" if act.name == THREADS:
                return f"accesses {self.buffer(act.parts[0][1])}"
            case "uses":
                return f"gives '{act.name}' {self.buffer(act.parts[0][1])}"
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
