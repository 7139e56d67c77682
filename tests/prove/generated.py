"""Small kernels drawn from a seed: two to four roles, rings with a producer that copies or stores, late releases, ragged trips,
an output ring, two instances in turn. Derived texts; as drawn, each is right.

Shape: `load` copies rows of X into a ring, `work` (one warp, four, or two instances) reads them, in some texts into a second ring that
`last` reads; some write their result out through a ring of bulk copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

ROW = 1024  # bytes of a slot: 256 elements of 4


@dataclass
class Text:
    """Lines of a text under construction. `bytes`: of shared memory, so far."""

    draw: Random
    shared: list[str] = field(default_factory=list)
    barriers: list[tuple[str, int, int]] = field(default_factory=list)  # name, slots, count
    bytes: int = 0

    def buffer(self, name: str, slots: int) -> None:
        self.shared.append(f"  shared {name}: f32[{slots}][256] at {self.bytes}")
        self.bytes += slots * ROW

    def ring(self, name: str, slots: int, full: int, empty: int) -> None:
        self.barriers += [(f"{name}_full", slots, full), (f"{name}_empty", slots, empty)]

    def barrier_lines(self) -> list[str]:
        out, at = [], self.bytes
        for name, slots, count in self.barriers:
            out.append(f"  barrier {name}: mbarrier[{slots}] count {count} at {at}")
            at += 8 * slots
        return [*out, "  if leader {", *(f"    mbarrier.init {n}" for n, _, _ in self.barriers), "    fence.mbarrier_init", "  }", "  cta.sync"]


def text(seed: int) -> str:
    """The kernel of a seed. Its sizes: R items of K rounds each (`SIZES`)."""
    draw = Random(seed)
    t = Text(draw)
    slots, warps, instances = draw.choice((1, 2, 2, 3)), draw.choice((1, 1, 2, 4)), draw.choice((1, 1, 2))
    two, mid, output = draw.random() < 0.3, draw.random() < 0.4, draw.random() < 0.4
    late = slots > 1 and draw.random() < 0.4
    turns = instances == 2 and draw.random() < 0.5
    all_lanes = draw.random() < 0.2
    trips = draw.choice(("K", "K", "K", "min(K, t_i)", "t_i % 3", "2"))
    buffers = ["s", "v"] if two else ["s"]
    for b in buffers:
        t.buffer(b, slots)
    arrivals = warps * instances * (32 if all_lanes else 1)
    t.ring("ring", slots, 1, arrivals)
    mid_slots, mid_of = draw.choice((1, 2)), draw.choice((1, 2))
    if mid:
        t.buffer("m", mid_slots * instances)
        t.ring("mid", mid_slots, warps * instances, mid_of)
    if output:
        t.buffer("d", 2 * instances)
    roles = [_load(slots, buffers, trips)]
    first = 1
    roles.append(_work(first, warps, instances, slots, buffers, trips, late, turns, all_lanes, mid_slots if mid else 0, output))
    first += warps * instances
    if mid:
        roles.append(_last(first, mid_of, mid_slots, instances, trips))
    lines = [
        "cake 1 derived",
        "kernel drawn(R: i32, K: i32, X: in f32[R, K, 256], Y: out f32[R, 8, 256])",
        "  require 0 <= R, R <= 65536, 0 <= K, K <= 65536",
        "  target sm90",
        "{",
        "  launch R persistent",
        *t.shared,
        *t.barrier_lines(),
        *(line for r in roles for line in r),
        "}",
    ]
    return "\n".join(lines) + "\n"


#: (R, K) at which the machine is asked. Rounds that go by the item's number come around a ring of three only after six items.
SIZES = ((1, 1), (1, 4), (2, 3), (3, 2), (5, 1), (1, 7), (2, 0), (3, 7), (8, 1))

ITEMS = "    for t_i in cluster.id .. R step cluster.count {"


def _load(slots: int, buffers: list[str], trips: str) -> list[str]:
    return [
        "  role load: 1 warp at 0 {",
        "    var fill = 0",
        ITEMS,
        f"      for k in 0 .. {trips} {{",
        f"        let i = fill % {slots}",
        f"        mbarrier.wait ring_empty[i] parity (fill / {slots} + 1) % 2",
        "        if leader {",
        f"          mbarrier.expect ring_full[i] bytes {ROW * len(buffers)}",
        *(f"          tma.load {b}[i] <- X[t_i, k, 0 +: 256] signal ring_full[i]" for b in buffers),
        "        }",
        "        fill = fill + 1",
        "      }",
        "    }",
        "  }",
    ]


def _release(barrier: str, lanes: bool, indent: str) -> list[str]:
    if lanes:
        return [f"{indent}mbarrier.arrive {barrier}"]
    return [f"{indent}warp.sync", f"{indent}if warp.leader {{", f"{indent}  mbarrier.arrive {barrier}", f"{indent}}}"]


def _work(first, warps, instances, slots, buffers, trips, late, turns, lanes, mid, output) -> list[str]:
    of = f"[{instances}]" if instances > 1 else ""
    mine = f"{mid} * work.i + " if instances > 1 else ""
    threads, id = 32 * warps, "1 + work.i" if instances > 1 else "1"
    out = [
        f"  role work{of}: {warps} warp{'s' if warps > 1 else ''} at {first} {{",
        "    var seen = 0, given = 0, n = 0",
        "    frag x: f32[256] vec 2 layout vector",
    ]
    if mid:
        out += ["    var put = 0"]
    if turns:
        out += ["    if work.i == 1 {", f"      bar.arrive 4 threads {2 * threads}", "    }"]
    out += [ITEMS, "      x = 0.0", f"      for k in 0 .. {trips} {{", f"        let i = seen % {slots}"]
    out += [f"        mbarrier.wait ring_full[i] parity seen / {slots} % 2", "        seen = seen + 1"]
    if turns:
        out += [f"        bar.sync 4 + work.i threads {2 * threads}"]
    out += [f"        x = x + load({b}[i], by = 8)" for b in buffers]
    if turns:
        out += [f"        bar.arrive 4 + (work.i + 1) % 2 threads {2 * threads}"]
    if late:
        out += ["        if k > 0 {", *_release(f"ring_empty[given % {slots}]", lanes, "          "), "          given = given + 1", "        }"]
    else:
        out += [*_release(f"ring_empty[given % {slots}]", lanes, "        "), "        given = given + 1"]
    if mid:
        out += [
            f"        let j = put % {mid}",
            f"        mbarrier.wait mid_empty[j] parity (put / {mid} + 1) % 2",
            f"        store m[{mine}j] <- x by 8",
            *_release("mid_full[j]", False, "        "),
            "        put = put + 1",
        ]
    out += ["      }"]
    if late:
        out += ["      if given < seen {", *_release(f"ring_empty[given % {slots}]", lanes, "        "), "        given = given + 1", "      }"]
    if output:
        slot = "2 * work.i + n % 2" if instances > 1 else "n % 2"
        out += [
            "      if leader {",
            "        tma.store.wait.read 1",
            "      }",
            f"      bar.sync {id} threads {threads}",
            f"      store d[{slot}] <- x by 8",
            "      fence.proxy.async",
            f"      bar.sync {id} threads {threads}",
            "      if leader {",
            f"        tma.store Y[t_i, {'work.i' if instances > 1 else '0'}, 0 +: 256] <- d[{slot}]",
            "        tma.store.commit",
            "      }",
            "      n = n + 1",
        ]
    out += ["    }"]
    if output:
        out += ["    if leader {", "      tma.store.wait.read 0", "    }"]
    if turns:
        out += ["    if work.i == 0 {", f"      bar.sync 4 threads {2 * threads}", "    }"]
    return [*out, "  }"]


def _last(first: int, warps: int, slots: int, instances: int, trips: str) -> list[str]:
    return [
        f"  role last: {warps} warp{'s' if warps > 1 else ''} at {first} {{",
        "    var seen = 0",
        "    frag y: f32[256] vec 2 layout vector",
        ITEMS,
        "      y = 0.0",
        f"      for k in 0 .. {trips} {{",
        f"        let j = seen % {slots}",
        f"        mbarrier.wait mid_full[j] parity seen / {slots} % 2",
        *(f"        y = y + load(m[{slots * i} + j], by = 8)" for i in range(instances)),
        *_release("mid_empty[j]", False, "        "),
        "        seen = seen + 1",
        "      }",
        "      store Y[t_i, 7, 0 +: 256] <- y by 8",
        "    }",
        "  }",
    ]
