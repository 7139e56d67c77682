"""Registers of 128 bits, and clusters that take over from others which have not begun: each index is worked on once, whoever does it."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.registers import on_registers

#: Each cluster of two works on the index it was launched for, then on those that it is given; lane 0 of each CTA notes (index, who) at its place.
STEALING = """.shared .align 16 .b8 answer[16];
.shared .align 8 .b8 bar[8];
.visible .entry k(.param .u64 DONE, .param .u64 WHO)
{
.reg .pred %p<8>;
.reg .b32 %r<16>;
.reg .b64 %d<8>;
.reg .b128 %q<2>;
ld.param.u64 %d0, [DONE];
ld.param.u64 %d1, [WHO];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, bar;
mov.u32 %r4, answer;
mov.u32 %r5, 0;
setp.eq.u32 %p0, %r0, 0;
sub.u32 %r6, %r1, %r2;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
$work:
@!%p0 bra $ask;
add.u32 %r7, %r6, %r2;
mad.wide.u32 %d2, %r7, 4, %d0;
atom.global.add.u32 %r8, [%d2], 1;
mad.wide.u32 %d2, %r7, 4, %d1;
st.global.u32 [%d2], %r1;
mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%r3], 16;
setp.eq.u32 %p1, %r2, 0;
@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r4], [%r3];
$ask:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], %r5;
@!%p2 bra $ask;
xor.b32 %r5, %r5, 1;
ld.shared.b128 %q0, [%r4];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
@!%p3 bra $end;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r6, %r9, %r10, _}, %q0;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r11, %q0;
setp.ne.u32 %p4, %r6, %r11;
@%p4 trap;
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
bra $work;
$end:
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ret;
}
"""


@pytest.mark.parametrize("schedule", ["round-robin", "random:2", "adversarial"])
@pytest.mark.parametrize("resident", [1, 3, 8])
def test_every_index_is_worked_on_once(emulates, schedule, resident):
    run = on_arrays(
        STEALING,
        {"DONE": np.zeros(16, np.uint32), "WHO": np.zeros(16, np.uint32)},
        emulates,
        grid=16,
        cluster=2,
        schedule=schedule,
        resident=resident,
    )
    assert run.findings == [] and run["DONE"].tolist() == [1] * 16
    launched = {int(w) for w in run["WHO"]}
    assert launched == set(range(2 * min(resident, 8))) if resident != 3 else 6 <= len(launched) < 16


def test_what_is_undefined_of_a_request_is_told(emulates):
    arrays = {"DONE": np.zeros(2, np.uint32), "WHO": np.zeros(2, np.uint32)}
    run = on_arrays(STEALING.replace("@!%p3 bra $end;\n", ""), arrays, emulates, grid=2, cluster=2)
    assert run.codes == ["emulate/operand"] and "of a request that failed" in run.findings[0].message
    again = STEALING.replace(
        "$end:\n",
        "$end:\n@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4], [%r3];\n",
    )
    run = on_arrays(again, arrays, emulates, grid=2, cluster=2)
    assert run.codes == ["emulate/operand"] and "has seen one fail" in run.findings[0].message


WIDE = ".reg .b128 %q<3>;\n.reg .b64 %e<4>;\n.reg .b64 %base;\n.reg .pred %z;"


def test_registers_of_128_bits(emulates):
    a, b = np.arange(32, dtype=np.uint64) << np.uint64(40), np.arange(32, dtype=np.uint64) + np.uint64(7)
    text = "mov.b128 %q0, {%a, %b};\nmov.b128 %q1, %q0;\nmov.b128 {%lo, %hi}, %q1;\n@%p mov.b128 {%lo, %hi}, {%hi, %lo};"
    given = {"a": a, "b": b, "p": np.arange(32) % 2 == 0}
    run = on_registers(text, given, {"lo": "uint64", "hi": "uint64"}, emulates, WIDE)
    swapped = np.arange(32) % 2 == 0
    assert run.findings == [] and (run["lo"] == np.where(swapped, b, a)).all() and (run["hi"] == np.where(swapped, a, b)).all()


MEMORY = """.visible .entry k(.param .u64 A, .param .u64 D)
{
.reg .b32 %r0;
.reg .b64 %d<9>;
.reg .b128 %q<4>;
.reg .pred %p0;
mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [A];
ld.param.u64 %d1, [D];
mad.wide.u32 %d2, %r0, 16, %d0;
ld.global.b128 %q0, [%d2];
mad.wide.u32 %d3, %r0, 16, %d1;
st.global.b128 [%d3+16], %q0;
mov.b64 %d4, 0;
mov.b128 %q1, {%d4, %d4};
atom.relaxed.gpu.global.cas.b128 %q2, [%d1], %q1, %q0;
mov.b128 {%d5, %d6}, %q2;
setp.eq.u32 %p0, %r0, 31;
@%p0 atom.relaxed.gpu.global.exch.b128 %q3, [%d1], %q2;
ret;
}
"""


def test_memory_of_128_bits(emulates):
    """The first lane finds zeros and puts its own value; the last one puts back what it found there."""
    values = np.arange(1, 65, dtype=np.uint64).reshape(32, 2)
    run = on_arrays(MEMORY, {"A": values, "D": np.zeros((33, 2), np.uint64)}, emulates)
    assert run.findings == [] and run["D"][1:].tolist() == values.tolist() and run["D"][0].tolist() == values[0].tolist()
