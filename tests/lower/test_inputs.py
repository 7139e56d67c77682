"""What the entry takes, and what the manifest says of it."""

import pytest

from cake_core.artifact import Check, EntryParamInfo, LaunchInfo, ParamInfo, TensorMapInfo

TEXT = """cake 1 derived
kernel k(N: i32, s: f32, A: in bf16[N, 64], B: in bf16[2 * N, 64], X: in f32[N], Y: out f32[N])
  require 1 <= N, N <= 1024, N % 4 == 0
  target sm90
{{
  let t = ceildiv(N, 64), u = t * 2
  launch u ctas 2 persistent
  shared a: bf16[64, 64] at 0 swizzle 128, b: bf16[64, 64] at 8192 swizzle 128, c: bf16[32, 64] at 16384 swizzle 128
  barrier full: mbarrier[1] count 1 at 24576
  role r: 1 warp at 0 {{
    frag x: f32[32] layout vector
{body}
  }}
}}
"""

LOADS = {
    "A": "tma.load a <- A[0 +: 64, 0 +: 64] signal full[0]",
    "B": "tma.load b <- B[0 +: 64, 0 +: 64] signal full[0]",
    "A32": "tma.load c <- A[0 +: 32, 0 +: 64] signal full[0]",
    "X": "x = load(X[0 +: 32], fill = 0, by = 4)",
    "Y": "store Y[0 +: 32] <- x by 4",
}


@pytest.mark.parametrize(
    "uses, maps, pointers",
    [
        ("", [], []),
        ("A", ["map_A"], []),
        ("B A", ["map_A", "map_B"], []),
        ("A A A", ["map_A"], []),
        ("B A32 A", ["map_A$0", "map_A$1", "map_B"], []),
        ("Y X", [], ["X", "Y"]),
        ("X A", ["map_A"], ["X"]),
    ],
)
def test_entry_parameters_come_in_a_stated_order(lowered, ptxas, uses, maps, pointers):
    """Maps by tensor, of one tensor by first use; then pointers; then all scalars."""
    low = lowered(TEXT.format(body="\n".join(LOADS[u] for u in uses.split())))
    assert [m.param for m in low.tensor_maps] == maps
    assert [(p.kind, p.ref) for p in low.entry_params] == [
        *(("map", i) for i in range(len(maps))),
        *(("pointer", p) for p in pointers),
        ("scalar", "N"),
        ("scalar", "s"),
    ]
    declared = [line.split()[-1].rstrip(",") for line in low.ptx.splitlines() if line.startswith("  .param")]
    assert declared == [*(f"{m}[128]" for m in maps), *(f"ptr_{p}" for p in pointers), "arg_N", "arg_s"]
    ptxas(low.ptx)


def test_first_use_orders_the_maps_of_one_tensor(lowered):
    low = lowered(TEXT.format(body=f"{LOADS['A32']}\n{LOADS['A']}"))
    assert low.tensor_maps == (TensorMapInfo("map_A$0", "A", "bf16", (32, 64), 128), TensorMapInfo("map_A$1", "A", "bf16", (64, 64), 128))


def test_manifest_records(lowered):
    low = lowered(TEXT.format(body=LOADS["X"]))
    assert low.params == (
        ParamInfo("N", "scalar", "i32"),
        ParamInfo("s", "scalar", "f32"),
        ParamInfo("A", "tensor", "bf16", "in", ("N", 64), False, 16),
        ParamInfo("B", "tensor", "bf16", "in", (["*", 2, "N"], 64), False, 16),
        ParamInfo("X", "tensor", "f32", "in", ("N",), True, 16),  # address arithmetic counts in extents: no padded strides
        ParamInfo("Y", "tensor", "f32", "out", ("N",), False, 16),
    )
    assert low.launch == LaunchInfo(32, 1, 24584 + 1024, ["*", ["ceildiv", "N", 64], 2], True, 2)
    assert low.requires[0] == Check(["<=", 1, "N"], "1 <= N") and len(low.requires) == 3
    assert low.entry_params[-1] == EntryParamInfo("scalar", "s", "f32")


def test_directives_come_from_the_architecture(lowered):
    low = lowered(TEXT.format(body=LOADS["A"]))
    lines = low.ptx.splitlines()
    assert lines[:3] == [".version 8.6", ".target sm_90a", ".address_size 64"]
    assert ".reqntid 32, 1, 1" in lines and ".minnctapersm 2" in lines


NAMED = """cake 1 derived
kernel NAME(NAME: i32, A: in bf16[NAME, 64])
  target sm90
{
  launch 1
  shared a: bf16[64, 64] at 0 swizzle 128
  barrier f: mbarrier[1] count 1 at 8192
  role r: 1 warp at 0 {
    tma.load a <- A[0 +: 64, 0 +: 64] signal f[0]
  }
}
"""


@pytest.mark.parametrize("name", ["add", "mov", "min", "ret", "map_A", "x"])
def test_any_name_of_the_language_is_a_parameter(lowered, ptxas, name):
    """No parameter is a reserved word of PTX, and none meets another's name."""
    text = NAMED.replace("NAME", name)
    ptxas(lowered(text).ptx)
