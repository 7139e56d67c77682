"""A PTX text on arrays: what tests and probes run instructions with.

    run = on_arrays(TEXT, {"A": a, "D": out, "n": np.int32(8)}, emulates)
    run.findings, run["D"]

Parameters go by name and order: an array becomes an allocation and its address, a numpy scalar its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake_core.emulate.device import Device, Program
from cake_core.emulate.grid import Grid
from cake_core.emulate.outcome import Finding
from cake_core.emulate.turns import turns_of
from cake_core.ptx.emulated import Emulated, TiledMap


@dataclass
class OnArrays:
    device: Device
    grid: Grid
    places: dict[str, tuple[int, np.ndarray]]

    @property
    def findings(self) -> list[Finding]:
        return list(self.grid.findings)

    @property
    def codes(self) -> list[str]:
        return [f.code for f in self.findings]

    def __getitem__(self, name: str) -> np.ndarray:
        """What an array holds after the run."""
        address, array = self.places[name]
        return np.frombuffer(self.device.get(address, array.nbytes), array.dtype).reshape(array.shape)


def on_arrays(
    text: str,
    given: Mapping[str, Any],
    emulates: Mapping[str, Emulated],
    block: tuple[int, int, int] | int = 32,
    grid: tuple[int, int, int] | int = 1,
    cluster: tuple[int, int, int] | int = 1,
    dynamic: int = 0,
    schedule: str = "round-robin",
    fresh: tuple[str, ...] = (),
    **more: Any,
) -> OnArrays:
    """Run the text's entry. `given`: arrays, of which those that bear no parameter's name are allocated too; numpy scalars; functions from the addresses of
    arrays to the value of a parameter, an address or the `TiledMap` of a tensor map. `fresh`: arrays that nobody has written. Raises PtxSyntaxError
    and Unsupported."""
    three = lambda n: n if isinstance(n, tuple) else (n, 1, 1)
    device, program = Device(), Program(text, emulates)
    places = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray) and value.ndim:
            places[name] = device.allocate(value.nbytes, name), value
            if name not in fresh:
                device.put(places[name][0], np.ascontiguousarray(value).view(np.uint8))
    data = bytearray(program.code.param_bytes)
    for name, _ in program.entry.params:
        at, (_, size) = program.code.params[name], program.entry.sizes[name]
        value = given[name]
        if name in places:
            data[at : at + size] = places[name][0].to_bytes(8, "little")[:size]
        elif callable(value):
            found: TiledMap | int = value({n: a for n, (a, _) in places.items()})
            data[at : at + size] = found.to_bytes(8, "little")[:size] if isinstance(found, int) else device.encode(found)[:size]
        else:
            data[at : at + size] = np.asarray(value).tobytes()[:size]
    turns = turns_of(schedule)
    if turns is None:
        raise ValueError(f"no schedule '{schedule}'")
    run = program.launch(device, three(grid), three(block), bytes(data), three(cluster), dynamic, turns, **more)
    return OnArrays(device, run, places)
