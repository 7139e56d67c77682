"""Tensor maps that a kernel makes, or changes of what the host has encoded, against boxes cut out by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.emulate.outcome import Unsupported
from cake_core.plugins import load_registry
from cake_core.ptx.emulated import TiledMap

HEAD = """.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .align 64 .b8 host[128], .param .u64 A, .param .u64 S, .param .u64 D)
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %d<9>, %A, %S, %D;
mov.u32 %r0, %tid.x;
mov.u32 %r1, smem;
ld.param.u64 %A, [A];
ld.param.u64 %S, [S];
ld.param.u64 %D, [D];
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared.b64 [%r1+2048], 1;
mad.lo.u32 %r2, %r0, 4, %r1;
"""
ZEROS = "st.shared.b32 [%r2+1024], 0;\n"
HOST = "mov.b64 %d0, host;\ncvta.param.u64 %d0, %d0;\nmad.wide.u32 %d0, %r0, 4, %d0;\nld.u32 %r3, [%d0];\nst.shared.b32 [%r2+1024], %r3;\n"
#: Publishes the map, and copies a box of 8 by 16 float16 at (x, y) to D.
TAIL = """bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%S], [%r1+1024], 128;
fence.proxy.tensormap::generic.acquire.gpu [%S], 128;
@!%p0 bra $wait;
mbarrier.arrive.expect_tx.shared.b64 _, [%r1+2048], 256;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%S, {{{x}, {y}}}], [%r1+2048];
$wait:
mbarrier.try_wait.parity.shared.b64 %p1, [%r1+2048], 0;
@!%p1 bra $wait;
mad.lo.u32 %r2, %r0, 8, %r1;
mad.wide.u32 %d0, %r0, 8, %D;
ld.shared.b64 %d1, [%r2];
st.global.b64 [%d0], %d1;
ret;
}}
"""


def replaced(field: str, *values, type: str = "b32", space: str = ".shared::cta") -> str:
    return f"@%p0 tensormap.replace.tile.{field}{space}.b1024.{type} [%r1+1024], {', '.join(map(str, values))};\n"


MADE = "bar.warp.sync -1;\n" + "".join(
    [
        replaced("global_address", "%A", type="b64"),
        replaced("rank", 1),
        *(replaced("box_dim", n, v) for n, v in enumerate((8, 16))),
        *(f"mov.b32 %r4, {v};\n" + replaced("global_dim", n, "%r4") for n, v in enumerate((40, 30))),
        "mov.b64 %d2, 96;\n" + replaced("global_stride", 0, "%d2", type="b64"),
        *(replaced("element_stride", n, 1) for n in range(2)),
        replaced("elemtype", 6),
        replaced("interleave_layout", 0),
        replaced("swizzle_mode", 0),
        replaced("fill_mode", 0),
    ]
)  # fmt: skip

ROWS = np.arange(30 * 48, dtype=np.float16).reshape(30, 48)  # 40 of 48 elements of a row are the tensor's


@pytest.fixture(scope="module")
def run():
    emulates = load_registry().emulates

    def go(body: str, x: int = 0, y: int = 0, other=None):
        host = lambda at: TiledMap(at["A"] + 96, 16, "float16", (40, 29), (96,), (8, 16), (1, 1), 0)
        given = {"host": host, "A": ROWS, "S": np.zeros(128, np.uint8), "D": np.zeros(128, np.float16)}
        return on_arrays(HEAD + body + TAIL.format(x=x, y=y), given, emulates, dynamic=4096)

    return go


def box(x: int, y: int, rows: np.ndarray = ROWS, width: int = 40) -> list:
    padded = np.zeros((80, 80), np.float16)
    padded[: len(rows), :width] = rows[:, :width]
    return padded[y : y + 16, x : x + 8].reshape(-1).tolist()


@pytest.mark.parametrize(("x", "y"), [(0, 0), (16, 8), (32, 20)])
def test_a_map_made_of_nothing(run, x, y):
    done = run(ZEROS + MADE, x, y)
    assert done.findings == [] and done["D"].tolist() == box(x, y)


def test_a_map_of_the_host_with_another_address_and_extent(run):
    done = run(HOST, 8, 4)
    assert done.findings == [] and done["D"].tolist() == box(8, 4, ROWS[1:])
    body = HOST + "bar.warp.sync -1;\n" + replaced("global_address", "%A", type="b64") + "mov.b32 %r4, 12;\n" + replaced("global_dim", 0, "%r4")
    done = run(body, 8, 4)
    assert done.findings == [] and done["D"].tolist() == box(8, 4, width=12)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            ZEROS
            + "bar.warp.sync -1;\n"
            + MADE.replace("global_dim.shared::cta.b1024.b32 [%r1+1024], 0", "global_dim.shared::cta.b1024.b32 [%r1+1024], 3"),
            "",
        ),
        (ZEROS + "bar.warp.sync -1;\nmov.b32 %r4, 5;\n" + replaced("rank", "%r4"), "of 6 dimensions"),
        (ZEROS + "@%p0 st.shared.b32 [%r1+1024], 77;\nbar.warp.sync -1;\n" + MADE, "no tensor map"),
        (ZEROS, "no tensor map"),
    ],
)
def test_what_is_wrong_with_a_map(run, body, said):
    done = run(body)
    assert done.codes == ["emulate/operand"] and said in done.findings[0].message if said else done.findings == [] and not done["D"].any()


@pytest.mark.parametrize(
    "line",
    [
        replaced("swizzle_mode", 4),
        replaced("interleave_layout", 1),
        replaced("elemtype", 16),
        replaced("global_stride", 4, "%d2", type="b64"),
        replaced("rank", 1, type="b64"),
    ],
)
def test_forms_that_are_not_covered(run, line):
    with pytest.raises(Unsupported):
        run(ZEROS + line)
