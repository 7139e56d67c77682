"""How register tiles lie over the threads of a role: from the layouts chosen for its fragments."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import frozen
from cake_core.ir.nodes import Attr, Binary, Call, Cond, Declaration, Expr, Index, Int, Name, Role, Tuple, Unary, Word
from cake_core.ir.places import place_of, root
from cake_core.ir.plan import layout_words
from cake_core.ir.printer import type_text
from cake_core.ir.types import Named, Product, Scalar, State, Tile, element_of
from cake_core.primitive import Distribution, Layout
from cake_core.primitive.distributions import joined
from cake_core.primitive.listed import listed


@frozen
class Fragments:
    """Distributions of a role's fragments and of the register tiles that `let`s name, and of expressions over them."""

    registry: object
    whole: dict[str, Distribution]
    types: dict[str, Tile]

    def of(self, expr: Expr) -> Distribution | None:
        """How the register tile that `expr` computes lies; None where nothing in it says so."""
        if isinstance(expr.type, Scalar | Product | Named):
            return None
        match expr:
            case Attr(base, field) if isinstance(getattr(base.type, "elem", None), State):
                rows = self.of(base)
                return listed(rows, field_size(self.registry, base.type.elem, field)) if rows is not None else None
            case Name() | Index() | Attr():
                name = root(expr)
                return self._part(expr, name.id) if name is not None and name.id in self.whole else None
            case Call():
                function = self.registry.functions.get(expr.name)
                return function.lies(expr, self.of) if function is not None else None
            case Binary(_, left, right):
                return joined((self.of(left), self.of(right)))
            case Unary(_, operand):
                return self.of(operand)
            case Cond(_, then, other):
                return joined((self.of(then), self.of(other)))
            case Tuple(items):
                return joined(map(self.of, items))
        return None

    def bound(self, name: str, value: Expr, lies: Distribution | None) -> Fragments:
        """With a name that a `let` binds."""
        whole, types = ({k: v for k, v in x.items() if k != name} for x in (self.whole, self.types))
        if lies is not None:
            whole[name], types[name] = lies, Tile("frag", value.type.elem, (tuple(value.type.shape),))
        return replace(self, whole=whole, types=types)

    def _part(self, expr: Expr, name: str) -> Distribution:
        whole = self.whole[name]
        where = place_of(expr, self.types[name])
        lo = tuple(p.lo.value for p in where.parts if isinstance(p.lo, Int))
        if where.sizes == whole.shape or len(lo) != len(where.parts):
            return whole
        for at, size, extent in zip(lo, where.sizes, whole.shape, strict=False):
            if not 0 <= at <= extent - size:
                raise fail("type/out-of-range", f"{at} +: {size} is outside 0 .. {extent}", expr.span, resource=name)
        chosen = whole.layout.select(whole.shape, whole.warps, lo, where.sizes, whole.words)
        if chosen is None:
            raise fail(
                "derive/fragment-granule",
                f"this part of fragment '{name}' cuts a granule of its layout '{whole.layout.name}'",
                expr.span,
                resource=name,
                why="a part holds the same number of elements of every thread, in the places that the layout gives them",
                fix="take whole granules, or the whole fragment",
            )
        offsets = tuple(tuple(x - start for x, start in zip(whole.offsets[e], lo, strict=True)) for e in chosen)
        return Distribution(whole.layout, where.sizes, whole.warps, whole.words, offsets)


def choose(registry, d: Declaration, demanded: dict[str, tuple[str, object]], around: Around) -> Layout:
    """The layout of a fragment: what an operation demands, else, along an axis, that of the two-dimensional fragments
    `around` it, else the one whose words the declaration carries."""
    if d.name in demanded:
        name, span = demanded[d.name]
        layout = registry.layouts.get(name)
        if layout is None:
            raise fail("derive/no-layout", f"no installed plugin offers the layout '{name}'", span, resource=d.name, why="the operation leaves its result in it, or takes its operands so")
        return layout
    if (layout := _beside(d, around)) is not None:
        return layout
    given = {w.name for w in d.words.items}
    named = [x for x in registry.layouts.values() if x.words and {w.name for w in x.words} <= given]
    if named:
        if (layout := next((x for x in named if _fits(x, d, around)), None)) is None:
            raise _does_not_fit(tuple(x.name for x in named), d, around.warps, around.role.name, layout_words(d))
        return layout
    raise fail("derive/no-layout", f"nothing says how fragment '{d.name}' lies over the threads", d.span, resource=d.name, fix="use it in an operation that has a layout, or give it `vec n`")


@frozen
class Around:
    """The role of a fragment: its warps, and the layouts of its two-dimensional fragments."""

    role: Role
    warps: int
    layouts: tuple[Layout, ...]


def _beside(d: Declaration, around: Around) -> Layout | None:
    """The layout of two-dimensional fragments that a fragment along their rows or columns shares. Raises CakeError where
    there are several."""
    if d.words.get("over") is None:
        return None
    fitting = {layout.name: layout for layout in around.layouts if _fits(layout, d, around)}
    if len(fitting) > 1:
        names = " and ".join(f"'{n}'" for n in sorted(fitting))
        raise fail("derive/no-layout", f"'{d.name}' could lie along tiles of the layouts {names}", d.span, resource=d.name, fix="keep them in roles of their own")
    return next(iter(fitting.values()), None)


def _fits(layout: Layout, d: Declaration, around: Around) -> bool:
    shape = tuple(e.value for e in d.declared.groups[-1])
    return layout.elements(shape, around.warps, layout_words(on_grid(d, layout, around.role)), element_of(d.declared)) is not None


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
    if layout.elements(shape, warps, words, element_of(d.declared)) is None:
        raise _does_not_fit((layout.name,), d, warps, role, words)
    return Distribution(layout, shape, warps, words, layout.offsets(shape, warps, words))


def _does_not_fit(layouts: tuple[str, ...], d: Declaration, warps: int, role: str, words: dict) -> CakeError:
    given = "".join(f" {k} {v}" for k, v in words.items())
    names = " and ".join(f"'{n}'" for n in sorted(layouts))
    several = len(layouts) > 1
    return fail(
        "derive/layout-does-not-fit",
        f"{'none of the layouts' if several else 'layout'} {names} {'divides' if several else 'does not divide'} '{d.name}' over {warps} warp{'s' if warps != 1 else ''}",
        d.span,
        resource=d.name,
        role=role,
        why=f"{32 * warps} threads would hold {type_text(d.declared)}{given}, each as much as the others and 16-bit elements in pairs",
        fix="another shape or number of warps" + (", or another `vec`" if "vec" in words else ""),
    )


def field_size(registry, state: State, field: str) -> int:
    """How many values a field of a state has a row."""
    return registry.reductions[state.type].fields(state.args)[field][1]
