"""A `tiles` statement taken apart: dimensions, ragged rows, order. Elaboration checks it, derivation writes it out.

    grid(m: M, n: N)            one item a cluster
    persistent(m: M, n: N)      the same items, taken in turn by the clusters that fit on the machine
    .. each = cluster           an item belongs to all CTAs of a cluster alike; without it they take neighbours of its first dimension
    ragged(rows: OFF, block = B) * grid(h: H) order ..
                                items of B rows of the groups [OFF[g], OFF[g + 1]), for each h; persistent. The CTAs of a cluster take
                                neighbouring blocks (axis `rows`), neighbours of the grid's first dimension (axis of its name), or,
                                with `each = cluster` in `ragged`, the same item

    .. dynamic COUNTER [ahead n]  the same items in the same order, each taken by who is free

The coordinates of an item are, in this order: of a ragged schedule `b` (group), `r0` (first row) and `r1` (one past the group's last
row); then one a dimension, of its name.
"""

from __future__ import annotations

from cake_core.frozen import frozen
from cake_core.ir.nodes import Binary, Call, Expr, Int, Name, Option, Tiles

#: Schedules, and the options that each takes.
SCHEDULES = {"persistent": ("raster", "each"), "grid": ("raster", "each"), "ragged": ("block", "each")}
#: The name of a cluster's axis along which its CTAs take neighbouring blocks of a ragged schedule's rows.
ROWS = "rows"
RAGGED_PARTS = ("b", "r0", "r1")
#: Orders of a ragged schedule that are made by the host, as a table of items, and the options that each takes.
TABLE_ORDERS = {"longest_first": (), "balanced": ("section",)}
#: Orders that every role finds by scanning the offsets.
SCAN_ORDERS = ("group_major",)


@frozen
class Ragged:
    """Groups of rows: group g is [offsets[g], offsets[g + 1]), cut into blocks of `block` rows, the last of each group shorter."""

    offsets: str
    groups: Expr  # how many there are
    block: int


@frozen
class Order:
    """`name` is one of the orders above; `cost` of an item, a formula of its coordinates and `let`s; `section` neighbours of
    (group, coordinates) that are worked on together (0: all)."""

    name: str
    cost: Expr | None = None
    section: int = 0

    @property
    def table(self) -> bool:
        return self.name in TABLE_ORDERS


@frozen
class Schedule:
    persistent: bool
    ragged: Ragged | None
    dims: tuple[Option, ...]
    raster: int | None
    order: Order | None
    ctas: int | None
    each: bool = False  # an item for all CTAs of a cluster
    counter: str | None = None  # the workspace whose first element items are drawn from, on demand
    ahead: int = 1  # items on demand that may be drawn before they are begun

    def split(self, axis: str | None, cluster: int) -> dict[str, int]:
        """By coordinate that differs among the CTAs of a cluster, how many neighbours of it a cluster takes: none, or one.

        `axis` and `cluster`: the cluster's axis and size; `ROWS` stands for the blocks of a ragged schedule."""
        return {axis: cluster} if cluster > 1 and not self.each else {}

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of an item's coordinates."""
        return (*(RAGGED_PARTS if self.ragged else ()), *(d.name for d in self.dims))


def factors(e: Expr) -> tuple[Expr, ...]:
    """The factors of `ragged(..) * grid(..)`."""
    return (*factors(e.left), *factors(e.right)) if isinstance(e, Binary) and e.op == "*" else (e,)


def read_schedule(s: Tiles) -> Schedule:
    """Of an elaborated statement."""
    calls = {c.name: c for c in factors(s.schedule)}
    ragged = calls.get("ragged")
    grid = next((c for n, c in calls.items() if n != "ragged"), None)
    found = None
    if ragged is not None:
        rows = next(a.value for a in ragged.args if a.is_dim)
        block = next(a.value for a in ragged.args if a.name == "block")
        found = Ragged(rows.id, groups_of(rows.type.shape[0]), block.value)
    args = grid.args if grid is not None else ()
    options = {a.name: a.value for c in calls.values() for a in c.args if not a.is_dim}
    raster = options["raster"].value if "raster" in options else None
    ctas = s.words.get("ctas")
    return Schedule(
        persistent=ragged is not None or grid.name == "persistent",
        ragged=found,
        dims=tuple(a for a in args if a.is_dim),
        raster=raster,
        order=_order(s.words.get("order")),
        ctas=ctas.value if isinstance(ctas, Int) else None,
        each="each" in options,
        counter=counter.id if isinstance(counter := s.words.get("dynamic"), Name) else None,
        ahead=ahead.value if isinstance(ahead := s.words.get("ahead"), Int) else 1,
    )


def groups_of(extent: Expr | int) -> Expr:
    """How many groups the offsets of so many elements bound."""
    match extent:
        case int():
            return Int(extent - 1)
        case Binary("+", e, Int(1)) | Binary("+", Int(1), e):
            return e
    return Binary("-", extent, Int(1), span=extent.span)


def _order(e: Expr | None) -> Order | None:
    match e:
        case Name(name):
            return Order(name)
        case Call():
            section = next((a.value.value for a in e.args if isinstance(a, Option)), 0)
            return Order(e.name, next(iter(e.positional), None), section)
    return None
