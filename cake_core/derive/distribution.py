"""How register tiles lie over the threads of a role: from the layouts chosen for its fragments."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Binary, Call, Cond, Declaration, Expr, Int, Role, Unary, Word
from cake_core.ir.places import place_of, root
from cake_core.ir.plan import layout_words
from cake_core.ir.types import ELEMENTS, Product, Scalar, Tile
from cake_core.primitive import Distribution, Layout


@dataclass(frozen=True, slots=True)
class Fragments:
    """Distributions of a role's declared fragments, by name, and of expressions over them."""

    registry: object
    whole: dict[str, Distribution]
    types: dict[str, Tile]

    def of(self, expr: Expr) -> Distribution | None:
        """As the first fragment in `expr` lies; None where there is none."""
        if isinstance(expr.type, Scalar | Product):
            return None
        name = root(expr)
        if name is not None and name.id in self.whole:
            return self._part(expr, name.id)
        match expr:
            case Call():
                function = self.registry.functions.get(expr.name)
                parts = expr.positional if function is None or function.arguments == "elementwise" else ()
            case Binary(_, left, right):
                parts = (left, right)
            case Unary(_, operand):
                parts = (operand,)
            case Cond(_, then, other):
                parts = (then, other)
            case _:
                parts = ()
        return next((d for d in map(self.of, parts) if d is not None), None)

    def _part(self, expr: Expr, name: str) -> Distribution:
        whole = self.whole[name]
        where = place_of(expr, self.types[name])
        lo = tuple(p.lo.value for p in where.parts if isinstance(p.lo, Int))
        if where.sizes == whole.shape or len(lo) != len(where.parts):
            return whole
        chosen = whole.layout.select(whole.shape, whole.warps, lo, where.sizes, whole.words)
        if chosen is None:
            raise fail("derive/fragment-granule", f"this part of fragment '{name}' cuts a granule of its layout '{whole.layout.name}'", expr.span, resource=name)
        offsets = tuple(tuple(x - start for x, start in zip(whole.offsets[e], lo, strict=True)) for e in chosen)
        return Distribution(whole.layout, where.sizes, whole.warps, whole.words, offsets)


def choose(registry, d: Declaration, demanded: dict[str, tuple[str, object]]) -> Layout:
    """The layout of a fragment: what an operation demands, else the one whose words the declaration carries."""
    if d.name in demanded:
        name, span = demanded[d.name]
        layout = registry.layouts.get(name)
        if layout is None:
            raise fail("derive/no-layout", f"no installed plugin offers the layout '{name}'", span, resource=d.name)
        return layout
    given = {w.name for w in d.words.items}
    for layout in registry.layouts.values():
        names = {w.name for w in layout.words}
        if names and names <= given:
            return layout
    raise fail("derive/no-layout", f"nothing says how fragment '{d.name}' lies over the threads", d.span, resource=d.name, fix="use it in an operation that has a layout, or give it `vec n`")


def on_grid(d: Declaration, layout: Layout, role: Role) -> Declaration:
    """A fragment's declaration with the warp grid of its role (`over (r, c)` on the header), where its layout knows one."""
    grid = role.words.word("over")
    if grid is None or not any(w.name == "grid" for w in layout.words):
        return d
    return replace(d, words=replace(d.words, items=(*d.words.items, Word("grid", grid.value, span=grid.span))))


def distribution(layout: Layout, d: Declaration, warps: int, role: str) -> Distribution:
    """`layout` over an instance of `warps` warps. Raises CakeError where the shape does not divide."""
    shape = tuple(e.value for e in d.declared.groups[-1])
    words = layout_words(d)
    if layout.elements(shape, warps, words, ELEMENTS[d.declared.name]) is None:
        raise fail("derive/layout-does-not-fit", f"layout '{layout.name}' does not divide '{d.name}' over {warps} warps", d.span, resource=d.name, role=role)
    return Distribution(layout, shape, warps, words, layout.offsets(shape, warps, words))
