"""What rows say of special values: where they are made, and of products with what a mask leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_core.effects import Mode
from cake_core.facts.schema import Access, Facts, events
from cake_core.facts.special import Made, Masked
from cake_core.ir.nodes import Call, Expr, Name


def made(m: Made | Masked, facts: Facts) -> tuple[str, dict]:
    """Relation and columns."""
    if isinstance(m, Made):
        return "special", {"function": m.function, "nan": m.nan, "unmasks": m.unmasks}
    found = list(dict.fromkeys(_sources(facts, m.buffer, m.along)))
    tensor, extent = found[0] if len(found) == 1 else (None, None)
    return "masked", {"bound": m.bound, "buffer": m.buffer, "tensor": tensor, "extent": extent, "finite": tensor in _finite(facts)}


def _sources(facts: Facts, buffer: str, along: int) -> Iterator[tuple[str, Expr] | tuple[None, None]]:
    """Of all that is written to a buffer: the tensor that it is a tile of, and that one's extent in a dimension of the tile."""
    shapes = {t.name: t.shape for t in facts.tensors}
    for e in (e for role in facts.roles for e in events(role.body)):
        touched = [a for a in e.acts if isinstance(a, Access)]
        for a in touched:
            if a.mode is Mode.WRITE and a.region.name == buffer and a.region.memory == "shared":
                tiles = [x.region for x in touched if x.mode is Mode.READ and x.region.memory == "global"]
                sizes = [n for n, x in enumerate(tiles[0].box) if not x.single] if len(tiles) == 1 else []
                wanted = along - sum(x.single for x in a.region.box[:along])
                yield (tiles[0].name, shapes[tiles[0].name][sizes[wanted]]) if 0 <= wanted < len(sizes) else (None, None)


def _finite(facts: Facts) -> set[str]:
    """Tensors of which an `assume` says that no element is infinite or a NaN."""
    return {e.positional[0].id for e in facts.assumes if isinstance(e, Call) and e.name == "finite" and isinstance(e.positional[0], Name)}
