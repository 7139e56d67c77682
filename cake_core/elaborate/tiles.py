"""Typing of tile schedules, of the values that their items carry, and of the loops over them (S9)."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.on_demand import AHEAD, OnDemand
from cake_core.elaborate.scope import Scope, Symbol, reported, suggestion
from cake_core.elaborate.typing import counted, described, named, range_of, typed
from cake_core.ir import ranges
from cake_core.ir.nodes import Block, Call, Expr, For, Int, Let, Name, Option, Tiles
from cake_core.ir.schedule import RAGGED_PARTS, ROWS, SCAN_ORDERS, SCHEDULES, TABLE_ORDERS, Schedule, factors, groups_of, read_schedule
from cake_core.ir.types import I32, Level, Named, Scalar, Unknown
from cake_core.primitive import Form, WordSpec

CTAS = WordSpec("ctas", "constant", Form.SCHEDULE, help="CTAs on a multiprocessor")
ORDERS = (*SCAN_ORDERS, *TABLE_ORDERS)


class TileSchedules(OnDemand):
    """Mixed into the elaborator, in front of the mix-in of declarations."""

    def _tiles(self, s: Tiles) -> Tiles:
        calls = factors(s.schedule)
        for c in calls:
            name = c.name if isinstance(c, Call) else ""
            if name not in SCHEDULES:
                raise fail(
                    "type/schedule",
                    f"'{name}' is no tile schedule" if name else "this is no tile schedule",
                    c.span,
                    fix="write `persistent(..) dynamic COUNTER`" if name == "dynamic" else suggestion(name, SCHEDULES, "schedules"),
                )
        kinds = [c.name for c in calls]
        if "ragged" in kinds:
            if kinds not in (["ragged"], ["ragged", "grid"]):
                raise fail(
                    "type/schedule",
                    f"a schedule of {' * '.join(kinds)}",
                    s.schedule.span,
                    fix="write `ragged(rows: OFFSETS, block = n)`, or that `* grid(..)`",
                )
            first = self._ragged(calls[0])
            done = first if len(calls) == 1 else replace(s.schedule, left=first, right=self._grid(calls[1], beside_ragged=True))
            self._axis_of_ragged(s, read_schedule(replace(s, schedule=done)))
        elif len(calls) > 1:
            raise fail(
                "type/schedule",
                f"a schedule of {' * '.join(kinds)}",
                s.schedule.span,
                why="only a ragged schedule is multiplied",
                fix="put all dimensions into one",
            )
        else:
            done = self._grid(calls[0])
        s = replace(s, schedule=done)
        order, dynamic = s.words.word("order"), s.words.word("dynamic")
        words = self.words(replace(s.words, items=tuple(w for w in s.words.items if w not in (order, dynamic))), (CTAS, AHEAD) if dynamic is not None else (CTAS,), "'tiles'", s.span)
        if words.flag is not None:
            raise fail("type/unknown-word", f"'tiles' has no flag '{words.flag}'", words.span)
        self.at_least_one_cta(words)
        self.drawn_ahead(words)
        scope = Scope(self.scope)
        types = self._part_types(s, scope)
        body = self._item_lets(s, scope, types)
        if order is not None:
            words = replace(words, items=(*words.items, replace(order, value=self._order(order.value, "ragged" in kinds, scope))))
        if dynamic is not None:
            words = replace(words, items=(*words.items, self.drawn_from(dynamic, kinds)))
        s = replace(s, words=words, body=body)
        self._beside_others(s)
        self.scope.bind(s.name, Symbol("tile schedule", Named("tiles", s.name), s.span, node=s))
        return s

    def _beside_others(self, s: Tiles) -> None:
        """What the schedules of a kernel have in common is its launch. Raises CakeError where they disagree about it."""
        schedule = read_schedule(s)
        for other in self.schedules:
            known, related = read_schedule(other), self.at(f"'{other.name}'", other.span)
            if not (known.persistent and schedule.persistent):
                alone = s if not schedule.persistent else other
                raise fail(
                    "type/schedule",
                    f"'{alone.name}' is a grid beside another schedule",
                    s.span,
                    related=related,
                    why="each cluster has one item of a grid, and of several schedules it takes what there is",
                    fix="write `persistent(..)`",
                )
            if None not in (known.ctas, schedule.ctas) and known.ctas != schedule.ctas:
                raise fail(
                    "type/schedule",
                    f"{counted(schedule.ctas, 'CTA')} on a multiprocessor, and {known.ctas} of '{other.name}'",
                    s.words.word("ctas").span,
                    related=related,
                    why="a kernel is launched once",
                    fix="say it once",
                )
            if schedule.counter is not None and schedule.counter == known.counter:
                raise fail(
                    "type/schedule",
                    f"the items of '{s.name}' and '{other.name}' are drawn from one counter",
                    s.words.word("dynamic").span,
                    related=related,
                    why="each number of a counter is one item",
                    fix="add a workspace for each",
                )
            if all(x.order is not None and x.order.table for x in (known, schedule)):
                raise fail("type/not-implemented", "a second table of items is not implemented yet", s.words.word("order").span, related=related)
        self.schedules.append(s)

    # --- dimensions

    def _axis_of_ragged(self, s: Tiles, schedule: Schedule) -> None:
        """Along what the CTAs of a cluster differ. Raises CakeError."""
        known = (ROWS, *(d.name for d in schedule.dims[:1]))
        if self.cluster_size > 1 and not schedule.each and self.cluster_axis not in known:
            raise fail(
                "type/schedule",
                f"the cluster's axis '{self.cluster_axis}' is neither the rows nor the first dimension",
                s.schedule.span,
                why="a cluster takes neighbouring blocks of rows, or neighbours of the first dimension",
                fix=f"call it {' or '.join(f'`{n}`' for n in known)}, or write `ragged(.., each = cluster)` where all CTAs take the same item",
            )

    def _grid(self, call: Call, beside_ragged: bool = False) -> Call:
        args = self._schedule_args(call)
        if beside_ragged and (option := next((a for a in args if not a.is_dim), None)) is not None:
            raise fail(
                "type/unknown-option",
                f"'{call.name}' beside a ragged schedule has no option '{option.name}'",
                option.span,
                fix="write it in `ragged(..)`" if option.name in SCHEDULES["ragged"] else "leave it out: the order of items is that of the ragged schedule",
            )
        dims = [a for a in args if a.is_dim]
        options = {a.name: a.value for a in args if not a.is_dim}
        raster = options.get("raster")
        if not 1 <= len(dims) <= 3 or raster is not None and len(dims) != 2:
            why = "a raster walks two dimensions" if raster is not None else "one to three are implemented"
            raise fail("type/schedule", f"a schedule with {counted(len(dims), 'dimension')}", call.span, why=why)
        for d in dims:
            self.no_reads(d.value, "type/schedule", f"dimension '{d.name}'", "the host counts the items before the kernel runs")
            self.some(d.value, f"dimension '{d.name}' is {d.value.value if isinstance(d.value, Int) else 'never positive'}")
        if raster is not None and raster.value < 1:
            raise fail("type/schedule", f"a raster of {raster.value}", raster.span, why="it is a number of tiles")
        if not beside_ragged and self.cluster_size > 1 and "each" not in options and dims[0].name != self.cluster_axis:
            raise fail(
                "type/schedule",
                f"the cluster's axis '{self.cluster_axis}' is not the first dimension, which is '{dims[0].name}'",
                dims[0].span,
                why="a cluster takes neighbours of the first dimension",
                fix=f"put `{self.cluster_axis}:` first, or write `each = cluster` where all CTAs take the same item",
            )
        return replace(call, args=args)

    def _schedule_args(self, call: Call) -> tuple[Option, ...]:
        args: list[Option] = []
        options = SCHEDULES[call.name]
        for a in call.args:
            if not isinstance(a, Option):
                raise fail("type/schedule", "a dimension has a name: `m: ceildiv(M, BM)`", a.span)
            if not a.is_dim and a.name not in options:
                raise fail(
                    "type/unknown-option", f"'{call.name}' has no option '{a.name}'", a.span, fix=suggestion(a.name, options, "options")
                )
            if any(b.name == a.name for b in args):
                raise fail("type/repeated", f"'{a.name}' stands twice", a.span)
            if a.name == "each" and not a.is_dim:
                args.append(replace(a, value=self._each(a.value)))
            elif call.name == "ragged" and a.is_dim:
                args.append(replace(a, value=self._offsets(a.value)))
            else:
                args.append(
                    replace(
                        a,
                        value=self.integer(a.value, f"dimension '{a.name}'")
                        if a.is_dim
                        else self.constant_int(a.value, f"option '{a.name}'"),
                    )
                )
        return tuple(args)

    def _each(self, e: Expr) -> Name:
        """`each = cluster`: the item belongs to the cluster."""
        if e != Name("cluster"):
            raise fail("type/schedule", "'each' says whose an item is", e.span, fix="write `each = cluster`, or leave it out")
        if self.cluster_size == 1:
            raise fail("type/schedule", "'each = cluster' in a kernel without clusters", e.span, fix="leave it out")
        return e

    def _ragged(self, call: Call) -> Call:
        args = self._schedule_args(call)
        if [a.name for a in args if a.name != "each" or a.is_dim] != ["rows", "block"] or not args[0].is_dim:
            raise fail("type/schedule", "'ragged' takes rows and a block", call.span, fix="write `ragged(rows: OFFSETS, block = n)`")
        block = next(a for a in args if a.name == "block")
        if block.value.value < 1:
            raise fail("type/schedule", f"blocks of {block.value.value} rows", block.span, why="an item has one row at least")
        return replace(call, args=args)

    def _offsets(self, e: Expr) -> Expr:
        out = self.expr(e)
        t = out.type
        if isinstance(t, Unknown):
            raise reported()
        symbol = self.scope.find(out.id) if isinstance(out, Name) else None
        if symbol is None or symbol.kind != "tensor" or symbol.node.mode != "in" or t.elem != I32 or len(t.shape) != 1:
            raise fail(
                "type/schedule",
                f"the rows of a ragged schedule are {described(t)}",
                e.span,
                why="group g holds the rows from OFFSETS[g] to OFFSETS[g + 1]",
                fix="name an `in i32[E + 1]` tensor",
            )
        self.some(replace(self.integer(groups_of(t.shape[0]), "the number of groups"), span=e.span), f"'{out.id}' bounds no group")
        return out

    # --- items

    def _part_types(self, s: Tiles, scope: Scope) -> dict[str, Scalar]:
        """Types of an item's coordinates, which are bound in `scope`."""
        schedule = read_schedule(s)
        types: dict[str, Scalar] = {}
        if schedule.ragged is not None:
            groups = range_of(self.integer(groups_of(self.scope.find(schedule.ragged.offsets).type.shape[0]), "the number of groups"))
            last = None if groups.hi is None else max(groups.hi - 1, 0)
            types = dict(
                zip(
                    RAGGED_PARTS,
                    (Scalar(I32, Level.CTA, r) for r in (ranges.Range(0, last), ranges.at_least(0), ranges.at_least(0))),
                    strict=True,
                )
            )
        for n, d in enumerate(schedule.dims):
            if d.name in types:
                raise fail("type/repeated", f"a dimension of the schedule is called '{d.name}', as a part of its ragged rows is", d.span)
            types[d.name] = Scalar(I32, Level.CTA, self._coordinate(d.value, first=n == 0 and d.name == self.cluster_axis))
        if s.body or s.words.get("order") is not None:
            for name, t in types.items():
                scope.bind(name, Symbol("loop variable", t, s.span), shadows=("loop variable",))
        return types

    def _coordinate(self, extent: Expr, first: bool) -> ranges.Range:
        """Coordinates of an item along one dimension; along the first a cluster may reach past the end."""
        past = self.cluster_size - 1 if first else 0
        hi = range_of(extent).hi
        return ranges.Range(0, None if hi is None else max(hi - 1 + past, 0))

    def _item_lets(self, s: Tiles, scope: Scope, parts: dict[str, Scalar]) -> Block | None:
        """The values that every item carries: uniform scalars, the same in every role."""
        if s.body is None:
            return None
        outer, self.scope = self.scope, scope
        self.inside.append(s)  # the roles evaluate them, item by item
        try:
            out = []
            for inner in s.body:
                if not isinstance(inner, Let):
                    raise fail("type/schedule", "an item carries values", inner.span, why="its block holds `let`s only")
                done = self._let(inner)
                for b in done.bindings:
                    if b.name in parts:
                        raise fail("type/redefined", f"'{b.name}' is a coordinate of the item", b.span, fix="choose another name")
                    if (
                        not isinstance(b.value.type, Scalar | Unknown)
                        or isinstance(b.value.type, Scalar)
                        and b.value.type.level > Level.CTA
                    ):
                        raise fail(
                            "type/schedule",
                            f"'{b.name}' is not the same value for the whole CTA",
                            b.span,
                            why="an item's values are the same in every role",
                        )
                out.append(done)
            return tuple(out)
        finally:
            self.inside.pop()
            self.scope = outer

    def _order(self, e: Expr, ragged: bool, scope: Scope) -> Expr:
        name = e.id if isinstance(e, Name) else e.name if isinstance(e, Call) else ""
        if name not in ORDERS:
            raise fail(
                "type/schedule",
                f"'{name}' is no order of items" if name else "this is no order of items",
                e.span,
                fix=suggestion(name, ORDERS, "orders"),
            )
        if not ragged:
            raise fail("type/schedule", f"order '{name}' is of ragged schedules", e.span, why="the items of a grid go by `raster`")
        if name in SCAN_ORDERS:
            if not isinstance(e, Name):
                raise fail("type/schedule", f"order '{name}' takes nothing", e.span)
            return typed(e, Named("order", name))
        if not isinstance(e, Call) or len(e.positional) != 1:
            raise fail(
                "type/schedule",
                f"order '{name}' goes by the cost of an item",
                e.span,
                fix=f"write `{name}(COST)`, COST being a formula of the item's values",
            )
        outer, self.scope = self.scope, scope
        try:
            cost = self.integer(e.positional[0], "the cost of an item")
        finally:
            self.scope = outer
        args: list[Expr] = [cost]
        for a in e.args:
            if isinstance(a, Option):
                if a.is_dim or a.name not in TABLE_ORDERS[name] or len(args) > 1:
                    raise fail(
                        "type/unknown-option",
                        f"'{name}' has no option '{a.name}'",
                        a.span,
                        fix=suggestion(a.name, TABLE_ORDERS[name], "options"),
                    )
                value = self.constant_int(a.value, f"option '{a.name}'")
                if value.value < 1:
                    raise fail("type/schedule", f"a section of {value.value}", a.span, why="it is a number of neighbours")
                args.append(replace(a, value=value))
        if "section" in TABLE_ORDERS[name] and len(args) == 1:
            raise fail(
                "type/missing-option", f"'{name}' needs the option 'section'", e.span, why="how many neighbours are worked on at one time"
            )
        return replace(e, args=tuple(args), type=Named("order", name))

    # --- loops over items

    def _for_items(self, s: For) -> For:
        self.check_form(Form.SCHEDULE, "a loop over items", s)
        tiles = self.expr(s.lo)
        if isinstance(tiles.type, Unknown):
            raise reported()
        if not named(tiles.type, "tiles"):
            raise fail(
                "type/operand",
                f"a loop without '..' runs over a tile schedule, not {described(tiles.type)}",
                s.lo.span,
                fix="write `for i in lo .. hi`",
            )
        if self.inside:
            raise fail(
                "type/placement", "a loop over items stands at the top of its role", s.span, why="every role must see the same items"
            )
        if s.words.flag is not None:
            raise fail("type/unknown-word", f"a loop over items has no flag '{s.words.flag}'", s.words.span)
        node: Tiles = self.scope.find(tiles.id).node
        parts = self._part_types(node, Scope())
        if len(parts) != len(s.pattern):
            raise fail(
                "type/pattern",
                f"an item has {len(parts)} coordinate{'s' if len(parts) > 1 else ''} ({', '.join(parts)}), the pattern {len(s.pattern)}",
                s.span,
            )
        if len(set(s.pattern)) < len(s.pattern):
            raise fail("type/repeated", "a name stands twice in the pattern", s.span)
        types = dict(zip(s.pattern, parts.values(), strict=True))
        carried = {b.name: b for inner in node.body or () for b in inner.bindings}
        for n in s.pattern:
            if n in carried:
                raise fail(
                    "type/redefined",
                    f"the item carries a value '{n}'",
                    s.span,
                    related=self.at("here", carried[n].span),
                    fix="call the coordinate another name",
                )
        types |= {n: b.value.type for n, b in carried.items()}
        schedule = read_schedule(node)
        self.item_count = f"{tiles.id}.n"
        if schedule.persistent:
            self.items_ahead = tuple(f"{tiles.id}.next.{part}" for part in schedule.parts)
        try:
            symbols = {n: Symbol("loop variable", t, s.span, formula=self.counted_through(n, t, None)) for n, t in types.items()}
            return self._loop(replace(s, lo=tiles), symbols)
        finally:
            self.item_count, self.items_ahead = None, ()

    def item_names(self, s: For) -> tuple[str, ...]:
        """Names that a loop over items binds besides its pattern: the values that an item carries."""
        symbol = self.scope.find(s.lo.id) if isinstance(s.lo, Name) else None
        if symbol is None or symbol.kind != "tile schedule":
            return ()
        return tuple(b.name for inner in symbol.node.body or () for b in inner.bindings)
