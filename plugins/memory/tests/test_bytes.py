"""Elements of 8 bits: whole registers of four are read and written; where that can't be known it is an error."""

import re

import pytest

from cake_core.diagnostics import CakeError

TEXT = """cake 1 derived
kernel k(R: i32, C: i32, X: in e4m3[R, C], Y: out e4m3[R, C])
  require 1 <= R, R <= 1024, 1 <= C, C <= 4096, C % {multiple} == 0
  target sm90
{{
  launch 1
  shared s: e4m3[1024] at 0
  role main: 1 warp at 0 {{
    frag x: e4m3[1024] vec 16 layout vector
    {statement}
  }}
}}
"""


@pytest.mark.parametrize(("by", "width"), [(16, ".v4.b32"), (8, ".v2.b32"), (4, ".b32")])
def test_a_row(ptx_of, by, width):
    ptx = ptx_of(TEXT.format(multiple=16, statement=f"x = load(X[R - 1, 0 +: 1024], by = {by})\n    store Y[R - 1, 0 +: 1024] <- x by {by}"))
    assert len(re.findall(rf"ld\.global\.nc\{width} ", ptx)) == len(re.findall(rf"st\.global\{width} ", ptx)) == 32 // by


def test_a_fill_stands_in_every_byte(ptx_of):
    ptx = ptx_of(TEXT.format(multiple=16, statement="x = load(X[0, C - 16 +: 1024], fill = 1.0, by = 16)"))
    assert ptx.count(f"mov.b32 %r{{0}}, {0x38383838};".split(", ")[1]) == 8  # 1.0 is 0x38


def test_through_shared_memory(ptx_of):
    ptx = ptx_of(TEXT.format(multiple=16, statement="store s <- x by 16\n    x = load(s, by = 16)"))
    assert ptx.count("st.shared.v4.b32") == ptx.count("ld.shared.v4.b32") == 2


@pytest.mark.parametrize("statement", ["x = load(X[0, 0 +: 1024], by = 2)", "store Y[0, 0 +: 1024] <- x by 2", "x = load(s, by = 1)"])
def test_less_than_a_register_is_refused(typed, statement):
    with pytest.raises(CakeError) as error:
        typed(TEXT.format(multiple=2, statement=statement))
    assert [d.code for d in error.value.diagnostics] == ["ptx/access-width"]
