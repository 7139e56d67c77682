"""What can be seen where a labelled statement is about to be executed: names, fragments, buffers and barriers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_core.frozen import frozen
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Kernel
from cake_core.machine import Site as Where
from cake_core.simulate.context import Context
from cake_core.simulate.expressions import Fragment

if TYPE_CHECKING:
    from cake_core.simulate.expressions import Env
    from cake_core.simulate.site import Site


@frozen
class Held:
    """An array: its name with its slot, its type, its values (of a state by field; None: nothing was written), and the share that is written; `word`: what is
    said of that share."""

    name: str
    type: str
    values: Any
    written: float = 1.0
    word: str = "written"


@frozen
class Standing:
    """A barrier: completed phases, arrivals and bytes that the running one is short of."""

    name: str
    phase: int
    arrivals: int
    bytes: int


@frozen
class Stop:
    """`names`: scalars by name; `fragments`, also tiles that a `let` names; `buffers`: slots of shared and tensor memory of the CTA."""

    label: str
    where: Where
    names: tuple[tuple[str, Any], ...]
    fragments: tuple[Held, ...]
    buffers: tuple[Held, ...]
    barriers: tuple[Standing, ...]


def labels_of(kernel: Kernel) -> tuple[str, ...]:
    """Labels of a typed derived kernel, in text order; those of statements that derive to others are gone."""
    return tuple(dict.fromkeys(s.label for s in walk(kernel.body) if s.label is not None))


def stop_at(label: str, site: Site, env: Env) -> Stop:
    cx = Context(site, env)
    scalars, tiles = [], []
    for name, bound in site.names.items():
        x = env[bound.slot]
        if bound.type is None:
            if x is not None:
                scalars.append((name, x.reshape(-1).tolist() if isinstance(x, np.ndarray) else x.item() if isinstance(x, np.generic) else x))
        elif isinstance(x, Fragment):
            kind = f"{bound.type.elem}[{', '.join(map(str, bound.type.shape))}]"
            tiles += [Held(name if len(x.arrays) == 1 else f"{name}[{n}]", kind, values) for n, values in enumerate(x.arrays)]
        elif x is not None:
            tiles.append(Held(name, f"{bound.type.elem}[{', '.join(map(str, bound.type.shape))}]", x))
    return Stop(label, cx.place(), tuple(scalars), tuple(tiles), tuple(_buffers(cx)), tuple(_barriers(cx)))


def _buffers(cx: Context) -> Iterator[Held]:
    plan = cx.memory.plan
    for b in (*plan.buffers.values(), *plan.tensors.values()):
        block = cx.memory.blocks[cx.cta, b.name]
        for slot in np.ndindex(*b.slots):
            written = float(block.written[slot].mean()) if block.written[slot].size else 1.0
            name = b.name + "".join(f"[{i}]" for i in slot)
            yield Held(name, f"{b.elem}[{', '.join(map(str, b.shape))}]", block.data[slot].copy() if written else None, written)


def _barriers(cx: Context) -> Iterator[Standing]:
    for p in sorted(cx.actor.agent.run.phases.values(), key=lambda p: (p.place.name, p.place.index)):
        if p.place.cta == cx.cta:
            yield Standing(f"{p.place.name}[{p.place.index}]", p.phase, p.pending, p.tx)
