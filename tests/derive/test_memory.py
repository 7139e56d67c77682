"""Shared memory: one swizzle that all users can address, slots that keep the alignment that is asked, offsets."""

from __future__ import annotations

import pytest

from cake_core.derive.memory import Asked, plan, unify
from cake_core.diagnostics import CakeError, Sink
from cake_core.ir.plan import integer
from cake_core.primitive import Demand
from cake_core.source import Source, Span
from cake_core.syntax import parse

AT = Span("t", 1, 1, 1, 2)


def asked(*demands: Demand) -> list[Asked]:
    return [Asked(d, f"op{i}", AT) for i, d in enumerate(demands)]


def kernel(*declarations: str):
    body = "".join(f"  shared {d}\n" for d in declarations)
    return parse(Source("t", f"cake 1\nkernel k(N: i32)\n{{\n{body}}}\n")).kernels[0]


def placed(k, *demands: Demand, swizzles=None) -> dict[str, tuple[int, int]]:
    done = plan(k, (), asked(*demands), swizzles or {})
    return {d.name: (integer(d.words, "at"), integer(d.words, "swizzle")) for s in done for d in s.declarations}


def test_the_first_that_all_share():
    sink = Sink()
    found = unify(asked(Demand("a", (128, 64, 0)), Demand("a", (64, 128)), Demand("b", (0, 32)), Demand("a", (32, 64, 128))), sink)
    assert (found, sink.items) == ({"a": 128, "b": 0}, [])


@pytest.mark.parametrize(
    ("demands", "named"),
    [
        ([(128, 64), (0,)], ("op0", "op1")),
        ([(128, 64, 0), (128, 64), (0, 128), (0,)], ("op1", "op3")),
        ([(128, 64), (64, 32), (128, 32)], ("op0", "op2")),  # two and two agree, all three do not
        ([()], ("op0", "op0")),
    ],
)
def test_who_is_at_odds(demands, named):
    sink = Sink()
    assert unify(asked(*(Demand("a", d) for d in demands)), sink) == {}
    (d,) = sink.items
    assert d.code == "derive/swizzle" and f"both '{named[0]}' and '{named[1]}'" in d.message


def test_wide_alignments_come_first_and_nothing_overlaps():
    k = kernel("p: f32[7]", "a: bf16[2][64, 64]", "q: f32[3]", "b: bf16[64, 64]")
    found = placed(k, Demand("a", (128,), 1024), Demand("b", (128,), 1024), swizzles={"a": 128, "b": 128})
    assert found == {"a": (0, 128), "b": (16384, 128), "p": (24576, 0), "q": (24608, 0)}


def test_a_slot_that_misses_its_alignment():
    with pytest.raises(CakeError) as caught:
        placed(kernel("a: bf16[2][8, 8]"), Demand("a", (0,), 256))
    (d,) = caught.value.diagnostics
    assert (d.code, d.resource) == ("derive/slot-alignment", "a") and "128 bytes" in d.message
    assert placed(kernel("a: bf16[8, 8]"), Demand("a", (0,), 256)) == {"a": (0, 0)}  # without slots there is nothing to miss
