"""More small kernels drawn from a seed: what `generated.py` has not. Derived texts; as drawn, each is right.

cluster   two CTAs fill each other's slots by multicast, a half or two quarters each, and give slots back to both
parts     two producers fill a part of each slot, two instances read theirs or all of it
named     a buffer handed to a writer and back by two named barriers, in turn with a ring
columns   tensor memory: accumulators of one or two slots, read in column ranges by one role or by two

Rounds of an item: a parameter, what a table says of the item (`L`), or few.
"""

from __future__ import annotations

from random import Random

FAMILIES = ("cluster", "parts", "named", "columns")
#: (R, K) at which the machine is asked.
SIZES = ((1, 1), (2, 3), (3, 2), (1, 5), (2, 0), (5, 1))
TABLE = (2, 0, 3, 1, 4)
ROUNDS = ("K", "K", "clamp(load(L[t_i], by = 4), 0, K)", "t_i % 3", "2")


def family(seed: int) -> str:
    return FAMILIES[seed % len(FAMILIES)]


def loads(tensor: str, index: tuple[int, ...]) -> int:
    """What `L` holds."""
    return TABLE[index[0] % len(TABLE)]


def text(seed: int) -> str:
    """The kernel of a seed. Its sizes: R items (of both CTAs together, in a cluster) of K rounds each."""
    draw = Random(seed)
    lines = {"cluster": _cluster, "parts": _parts, "named": _named, "columns": _columns}[family(seed)](draw)
    return "\n".join(lines) + "\n"


def _head(params: str, target: str, *more: str) -> list[str]:
    return [
        "cake 1 derived",
        f"kernel drawn(R: i32, K: i32, L: in i32[R], {params})",
        "  require 0 <= R, R <= 65536, 0 <= K, K <= 65536",
        f"  target {target}",
        *more,
        "{",
        "  launch R persistent",
    ]


def _shared(buffers: list[tuple[str, str, int]], barriers: list[tuple[str, int, int]], sync: str) -> list[str]:
    """`buffers`: name, type, bytes; `barriers`: name, slots, count."""
    out, at = [], 0
    for name, type, size in buffers:
        out.append(f"  shared {name}: {type} at {at}")
        at += size
    for name, slots, count in barriers:
        out.append(f"  barrier {name}: mbarrier[{slots}] count {count} at {at}")
        at += 8 * slots
    return [*out, "  if leader {", *(f"    mbarrier.init {n}" for n, _, _ in barriers), "    fence.mbarrier_init", "  }", f"  {sync}"]


ITEMS = "    for t_i in cluster.id .. R step cluster.count {"


def _role(
    head: str, variables: str, before: list[str], item: list[str], rounds: str, body: list[str], behind: list[str], after: list[str]
) -> list[str]:
    indent = lambda lines, by: [" " * by + x for x in lines]
    return [
        f"  role {head} {{",
        f"    {variables}",
        *indent(before, 4),
        ITEMS,
        f"      let rounds = {rounds}",
        *indent(item, 6),
        "      for k in 0 .. rounds {",
        *indent(body, 8),
        "      }",
        *indent(behind, 6),
        "    }",
        *indent(after, 4),
        "  }",
    ]


def _fill(ring: str, slots: int, size: int, copies: list[str]) -> list[str]:
    return [
        f"let i = fill % {slots}",
        f"mbarrier.wait {ring}_empty[i] parity (fill / {slots} + 1) % 2",
        "if leader {",
        f"  mbarrier.expect {ring}_full[i] bytes {size}",
        *(f"  {c}" for c in copies),
        "}",
        "fill = fill + 1",
    ]


def _give(barrier: str, ranks: tuple[int, ...] = ()) -> list[str]:
    at = [f"  mbarrier.arrive {barrier} at {r}" for r in ranks] or [f"  mbarrier.arrive {barrier}"]
    return ["warp.sync", "if warp.leader {", *at, "}"]


def _late(slots: int, late: bool, barrier: str, ranks: tuple[int, ...] = ()) -> tuple[list[str], list[str]]:
    """(in a round, behind the last): a slot is given back at once, or one round later."""
    give = [*_give(f"{barrier}[given % {slots}]", ranks), "given = given + 1"]
    inner = [f"  {x}" for x in give]
    return (["if k > 0 {", *inner, "}"], ["if given < seen {", *inner, "}"]) if late else (give, [])


# --- two CTAs fill each other's slots ----------------------------------------------------------------------------


def _cluster(draw: Random) -> list[str]:
    slots, warps, quarters, own = draw.choice((1, 2, 3)), draw.choice((1, 2)), draw.random() < 0.4, draw.random() < 0.4
    late, rounds = slots > 1 and draw.random() < 0.4, draw.choice(ROUNDS)
    rows, wide = (4, 64) if quarters else (2, 128)
    each = rows // 2
    halves = [f"{each} * cluster.m + {r}" if quarters else "cluster.m" for r in range(each)]
    copies = [f"tma.load s[i][{h} +: 1, :] <- X[t_i, k, {h} +: 1, 0 +: {wide}] signal ring_full[i] mask 3" for h in halves]
    buffers = [("s", f"f32[{slots}][{rows}, {wide}]", slots * 1024)]
    if own:  # beside what both share, something for each
        buffers.append(("v", f"f32[{slots}][{wide}]", slots * 4 * wide))
        copies.append(f"tma.load v[i] <- X[t_i, k, cluster.m, 0 +: {wide}] signal ring_full[i]")
    give, last = _late(slots, late, "ring_empty", (0, 1))
    reads = [f"x = x + load(s[i][{r}, :], by = 8)" for r in range(rows)] + (["x = x + load(v[i], by = 8)"] if own else [])
    warps = min(warps, wide // 64)
    work = [
        f"let i = seen % {slots}",
        f"mbarrier.wait ring_full[i] parity seen / {slots} % 2",
        "seen = seen + 1",
        *reads,
        *give,
    ]
    return [
        *_head(f"X: in f32[R, K, {rows}, {wide}], Y: out f32[R, 2, {wide}]", "sm90", "  cluster m = 2"),
        *_shared(buffers, [("ring_full", slots, 1), ("ring_empty", slots, 2 * warps)], "cluster.sync"),
        *_role("load: 1 warp at 0", "var fill = 0", [], [], rounds, _fill("ring", slots, 1024 + (4 * wide if own else 0), copies), [], []),
        *_role(
            f"work: {_warps(warps)} at 1",
            "var seen = 0, given = 0",
            [f"frag x: f32[{wide}] vec 2 layout vector"],
            ["x = 0.0"],
            rounds,
            work,
            [*last, f"store Y[t_i, cluster.m, 0 +: {wide}] <- x by 8"],
            [],
        ),
        "  cluster.sync",
        "}",
    ]


def _warps(n: int) -> str:
    return f"{n} warp{'s' if n > 1 else ''}"


# --- parts of a slot ---------------------------------------------------------------------------------------------


def _parts(draw: Random) -> list[str]:
    slots, rounds, all_of_it, back = draw.choice((1, 2, 2, 3)), draw.choice(ROUNDS), draw.random() < 0.5, draw.random() < 0.5
    late = slots > 1 and draw.random() < 0.4
    cut = draw.choice((1, 2, 3))  # rows of four that the first producer fills
    ranges = ((0, cut), (cut, 4 - cut))
    give, last = _late(slots, late, "ring_empty")
    mine = "s[i][2 * work.i + {}, :]"
    reads = [f"x = x + load(s[i][{r}, :], by = 8)" for r in range(4)] if all_of_it else [f"x = x + load({mine.format(r)}, by = 8)" for r in range(2)]
    work = [f"let i = seen % {slots}", f"mbarrier.wait ring_full[i] parity seen / {slots} % 2", "seen = seen + 1", *reads]
    if back and not all_of_it:  # in place: each instance in its rows
        work += [f"store {mine.format(0)} <- x by 8", "fence.proxy.async"]
    roles = []
    for n, (first, count) in enumerate(ranges):
        copy = f"tma.load s[i][{first} +: {count}, :] <- X[t_i, k, {first} +: {count}, 0 +: 64] signal ring_full[i]"
        roles += _role(f"load{n}: 1 warp at {n}", "var fill = 0", [], [], rounds, _fill("ring", slots, 256 * count, [copy]), [], [])
    return [
        *_head("X: in f32[R, K, 4, 64], Y: out f32[R, 2, 64]", "sm90"),
        *_shared([("s", f"f32[{slots}][4, 64]", slots * 1024)], [("ring_full", slots, 2), ("ring_empty", slots, 2)], "cta.sync"),
        *roles,
        *_role(
            "work[2]: 1 warp at 2",
            "var seen = 0, given = 0",
            ["frag x: f32[64] vec 2 layout vector"],
            ["x = 0.0"],
            rounds,
            [*work, *give],
            [*last, "store Y[t_i, work.i, 0 +: 64] <- x by 8"],
            [],
        ),
        "}",
    ]


# --- named barriers ----------------------------------------------------------------------------------------------


def _named(draw: Random) -> list[str]:
    slots, warps, rounds, every = draw.choice((1, 2, 3)), draw.choice((1, 2, 4)), draw.choice(ROUNDS), draw.random() < 0.5
    late = slots > 1 and draw.random() < 0.4
    threads = 32 * (warps + 1)
    give, last = _late(slots, late, "ring_empty")
    hand = [f"bar.sync 2 threads {threads}", "store d[0] <- x by 8", "fence.proxy.async", f"bar.arrive 3 threads {threads}"]
    write = [
        f"bar.sync 3 threads {threads}",
        "if leader {",
        f"  tma.store Y[t_i, {'k' if every else '0'}, 0 +: 256] <- d[0]",
        "  tma.store.commit",
        "  tma.store.wait.read 0",
        "}",
        "warp.sync",
        f"bar.arrive 2 threads {threads}",
    ]
    work = [
        f"let i = seen % {slots}",
        f"mbarrier.wait ring_full[i] parity seen / {slots} % 2",
        "seen = seen + 1",
        "x = x + load(s[i], by = 8)",
        *give,
    ]
    copy = "tma.load s[i] <- X[t_i, k, 0 +: 256] signal ring_full[i]"
    return [
        *_head("X: in f32[R, K, 256], Y: out f32[R, max(K, 3), 256]", "sm90"),
        *_shared(
            [("s", f"f32[{slots}][256]", slots * 1024), ("d", "f32[1][256]", 1024)],
            [("ring_full", slots, 1), ("ring_empty", slots, warps)],
            "cta.sync",
        ),
        *_role("load: 1 warp at 0", "var fill = 0", [], [], rounds, _fill("ring", slots, 1024, [copy]), [], []),
        *_role(
            f"work: {_warps(warps)} at 1",
            "var seen = 0, given = 0",
            ["frag x: f32[256] vec 2 layout vector"],
            ["x = 0.0"],
            rounds,
            [*work, *(hand if every else [])],
            [*last, *([] if every else hand)],
            [f"bar.sync 2 threads {threads}"],
        ),
        *_role(
            f"out: 1 warp at {warps + 1}",
            "var n = 0",
            [f"bar.arrive 2 threads {threads}"],
            [],
            rounds if every else "1",
            write,
            [],
            [],
        ),
        "}",
    ]


# --- columns of tensor memory ------------------------------------------------------------------------------------


def _columns(draw: Random) -> list[str]:
    slots, rounds = draw.choice((1, 2)), draw.choice(("max(K, 1)", "clamp(load(L[t_i], by = 4), 1, max(K, 1))", "t_i % 3 + 1", "2"))
    accumulators, readers, ranges = draw.choice((1, 2)), draw.choice((1, 2)), draw.choice((1, 2))
    columns = 64 * accumulators
    count = 4 * readers
    mma = [
        f"let s = waited % {slots}",
        f"mbarrier.wait full[s] parity waited / {slots} % 2",
        "tcgen05.fence.after",
        "waited = waited + 1",
        "if leader {",
        "  tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0",
        "  tcgen05.commit empty[s]",
        "}",
    ]
    copies = ["tma.load a[i] <- A[t_i * 128 +: 128, k * 64 +: 64] signal full[i]", "tma.load b[i] <- B[0 +: 64, k * 64 +: 64] signal full[i]"]
    fill = [x.replace("ring_", "") for x in _fill("ring", slots, 24576, copies)]
    drain = [f"for last in 0 .. {slots} {{", f"  mbarrier.wait empty[fill % {slots}] parity (fill / {slots} + 1) % 2", "  fill = fill + 1", "}"]
    own = 64 // readers  # columns of a role
    wide = own // ranges
    tmem = "bf16"
    roles = []
    for n in range(readers):
        read = []
        for part in range(ranges):
            at = own * n + wide * part
            read += [f"tcgen05.ld x{part} <- acc[u][:, {at} +: {wide}]"]
        read += ["tcgen05.wait.ld", "tcgen05.fence.before", *_give("acc_empty[u]")]
        store = [f"store D[t_i * 128 +: 128, {own * n + wide * part} +: {wide}] <- x{part} by 16" for part in range(ranges)]
        roles += [
            f"  role epi{n}: 4 warps at {4 + 4 * n} {{",
            "    var waited = 0",
            f"    frag {', '.join(f'x{part}: f32[128, {wide}] layout tmem' for part in range(ranges))}",
            ITEMS,
            f"      let u = waited % {accumulators}",
            f"      mbarrier.wait acc_full[u] parity waited / {accumulators} % 2",
            "      tcgen05.fence.after",
            "      waited = waited + 1",
            *(f"      {x}" for x in (*read, *store)),
            "    }",
            "  }",
        ]
    head = _head("A: in bf16[R * 128, K * 64], B: in bf16[64, K * 64], D: out f32[R * 128, 64]", "sm100")
    buffers = [("a", f"{tmem}[{slots}][128, 64]", slots * 16384), ("b", f"{tmem}[{slots}][64, 64]", slots * 8192), ("tmem_at", "u32[1]", 8)]
    barriers = [("full", slots, 1), ("empty", slots, 1), ("acc_full", accumulators, 1), ("acc_empty", accumulators, count)]
    shared = [x + " swizzle 128" if x.startswith(("  shared a:", "  shared b:")) else x for x in _shared(buffers, barriers, "")][:-1]
    return [
        *head,
        *shared,
        "  if warp == 0 {",
        "    warp.sync",
        f"    tcgen05.alloc tmem_at[0] columns {columns}",
        "    tcgen05.relinquish",
        "  }",
        "  cta.sync",
        "  let tmem_base = load(tmem_at[0], by = 4)",
        f"  tmem acc: f32[{accumulators}][128, 64] at 0 base tmem_base",
        *_role("load: 1 warp at 0", "var fill = 0", [], [], rounds, fill, [], drain),
        *_role(
            "mma: 1 warp at 1",
            "var waited = 0, filled = 0",
            [],
            [
                f"let u = filled % {accumulators}",
                f"mbarrier.wait acc_empty[u] parity (filled / {accumulators} + 1) % 2",
                "tcgen05.fence.after",
                "filled = filled + 1",
            ],
            rounds,
            mma,
            ["if leader {", "  tcgen05.commit acc_full[u]", "}"],
            [],
        ),
        *roles,
        "  warp.sync",
        "  cta.sync",
        "  if warp == 0 {",
        "    warp.sync",
        "    tcgen05.fence.after",
        f"    tcgen05.dealloc tmem_base columns {columns}",
        "  }",
        "}",
    ]
