"""Variables of a module and of threads: constants and tables with their initial values, stacks, addresses with offsets."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.plugins import load_registry

MODULE = """.const .align 4 .f32 factors[3] = {0f3F800000, 0fC0000000, 0f3F000000};
.global .align 8 .u32 counts[4] = {5, 6};
.global .align 1 .b8 $unused[4] = {generic(counts)};
.visible .entry k(.param .u64 D)
{
.local .align 16 .b8 depot[16];
.reg .pred %p0;
.reg .b32 %r<9>;
.reg .f32 %f<3>;
.reg .b64 %d<9>, %SP, %SPL;
mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [D];
mad.wide.u32 %d0, %r0, 4, %d0;
"""


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates
    return lambda body, **more: on_arrays(MODULE + body + "\nret;\n}\n", {"D": np.zeros(64, np.uint32)}, emulates, **more)


def test_constants_and_tables(run):
    done = run("""ld.const.f32 %f0, [factors+4];
        ld.global.u32 %r1, [counts+4];
        mov.u64 %d1, counts+8;
        ld.global.u32 %r2, [%d1];
        cvta.global.u64 %d2, %d1;
        ld.u32 %r4, [%d2+-8];
        cvt.rzi.s32.f32 %r3, %f0;
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        add.u32 %r1, %r1, %r4;
        st.global.u32 [%d0], %r1;""")
    assert done.findings == [] and set(done["D"][:32].tolist()) == {6 + 0 - 2 + 5}


def test_what_is_written_stays_for_the_next_reader(run):
    done = run("@!%p0 atom.global.add.u32 %r1, [counts], 1;\nst.global.u32 [%d0], %r1;".replace("@!%p0 ", ""), block=64)
    assert sorted(done["D"].tolist()) == list(range(5, 69))


def test_each_thread_has_a_stack_of_its_own(run):
    """As compilers use it: by the window and by generic addresses, indexed by a value that differs from lane to lane."""
    done = run(
        """mov.u64 %SPL, depot;
        cvta.local.u64 %SP, %SPL;
        st.local.v4.u32 [%SPL], {%r0, %r0, %r0, %r0};
        and.b32 %r1, %r0, 3;
        mad.wide.u32 %d1, %r1, 4, %SP;
        add.u32 %r2, %r0, 1000;
        st.u32 [%d1], %r2;
        ld.local.u32 %r3, [depot+4];
        st.global.u32 [%d0], %r3;""",
        block=64,
    )
    assert done.findings == [] and done["D"].tolist() == [n + 1000 if n % 4 == 1 else n for n in range(64)]


def test_names_without_a_space(run):
    """`[name]` of an instruction that names no space is the variable."""
    done = run("st.u32 [depot+8], %r0;\nld.u32 %r1, [depot+8];\nld.u32 %r2, [counts+4];\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%d0], %r1;")
    assert done.findings == [] and done["D"][:32].tolist() == [n + 6 for n in range(32)]


@pytest.mark.parametrize(
    ("access", "code"),
    [
        ("ld.local.u32 %r1, [depot+4]", "emulate/uninitialised"),
        ("st.local.u32 [depot+16], %r0", "emulate/out-of-bounds"),
        ("ld.const.u32 %r1, [factors+12]", "emulate/out-of-bounds"),
    ],
)
def test_misuse(run, access, code):
    assert run(f"{access};").codes == [code]


def test_vectors_as_registers(run):
    """Elements by both sets of words, a vector for all of its own, vectors that a block declares under a name of the outside."""
    done = run("""ld.const.f32 %f0, [factors];
        .reg .v4 .b32 %v;
        .reg .v2 .b64 pair;
        mov.v4.b32 %v, {1, 2, 3, %r0};
        add.u32 %v.x, %v.y, %v.w;
        add.u32 %v.g, %v.b, %v.a;
        st.local.v4.b32 [depot], %v;
        {
          .reg .v2 .b32 %v;
          ld.local.v2.b32 %v, [depot];
          mul.lo.u32 %r1, %v.x, 100;
          add.u32 %r1, %r1, %v.y;
        }
        mul.lo.u32 %v.x, %v.z, 10000;
        ld.local.v2.b64 pair, [depot];
        cvt.u32.u64 %r2, pair.y;
        mad.lo.u32 %r2, %r2, 100000, %v.x;
        add.u32 %r1, %r1, %r2;
        st.global.u32 [%d0], %r1;""")
    lane = np.arange(32)
    assert done.findings == []
    assert done["D"][:32].tolist() == (100 * (2 + lane) + 3 + lane + 300000 + 30000).tolist()
