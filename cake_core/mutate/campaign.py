"""Which mutants of a kernel there are: all single ones, and some drawn of up to three edits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from cake_core.architecture import Architecture
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.ir.nodes import Kernel
from cake_core.mutate.declarations import declaration_edits
from cake_core.mutate.operators import statement_edits
from cake_core.mutate.sites import Edit


def mutants(kernel: Kernel, typed: Kernel, registry) -> Iterator[Edit]:
    """Every operator at every place of `kernel`, a derived form; `typed`: the same, elaborated. Texts that come out alike are given once."""
    seen = {kernel}
    for edit in (*statement_edits(kernel, typed, registry), *declaration_edits(kernel, typed)):
        if edit.kernel not in seen:
            seen.add(edit.kernel)
            yield edit


def drawn(kernel: Kernel, typed: Kernel, registry, arch: Architecture, count: int, seed: int, most: int = 3, start: int = 0) -> Iterator[Edit]:
    """`count` mutants of one to `most` edits, one after the other in each. The n-th of a seed is the same whatever `start` it is drawn from."""
    first = list(mutants(kernel, typed, registry))
    for n in range(start, start + count if first else start):
        draw = Random(f"{seed} {n}")
        edit = draw.choice(first)
        for _ in range(draw.choice(range(most))):
            try:
                again = elaborate(edit.kernel, registry, arch, derived=True, overrides={})
            except CakeError:
                break
            more = draw.choice(list(mutants(edit.kernel, again, registry)) or [edit])
            edit = Edit(f"{edit.operator} + {more.operator}", f"{edit.what}; {more.what}", edit.span, more.kernel)
        yield edit
