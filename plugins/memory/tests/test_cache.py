"""Cache words: what they put into the opcode, what follows the address, and where they are refused."""

import re

import pytest

from cake_core.diagnostics import CakeError

TEXT = """cake 1 derived
kernel k(R: i32, X: in bf16[R, 256], Z: inout f32[R, 256], Y: out bf16[R, 256])
  require 1 <= R, R <= 1024
  target sm90
{{
  launch 1
  shared s: bf16[256] at 0
  role main: 1 warp at 0 {{
    frag x: bf16[256] vec 8 layout vector, z: f32[256] vec 8 layout vector
    {statement}
  }}
}}
"""


def accesses(ptx):
    return re.findall(r"^  (?:@%p\d+ )?((?:ld|st)\.global\S*) .*?((?:, %d\d+)?);|^  (createpolicy\S*)", ptx, re.M)


@pytest.mark.parametrize(
    ("statement", "opcode"),
    [
        ("x = load(X[R - 1, 0 +: 256], l1 = no_allocate, by = 16)", "ld.global.nc.L1::no_allocate.v4.b32"),
        ("z = load(Z[0, 0 +: 256], l1 = evict_last, by = 8)", "ld.global.L1::evict_last.v2.b32"),
        ("store Y[0, 0 +: 256] <- x l1 no_allocate by 16", "st.global.L1::no_allocate.v4.b32"),
        ("store Y[0, 0 +: 256] <- x l1 evict_first by 2", "st.global.L1::evict_first.b16"),
        ("store Z[0, 5] <- 1.0 l1 evict_first by 4", "st.global.L1::evict_first.b32"),
    ],
)
def test_of_the_first_level_a_qualifier(ptx_of, statement, opcode):
    found = accesses(ptx_of(TEXT.format(statement=statement)))
    assert found and all(f == (opcode, "", "") for f in found)


@pytest.mark.parametrize(
    ("statement", "opcode", "policy"),
    [
        ("x = load(X[R - 1, 0 +: 256], l2 = evict_first, by = 16)", "ld.global.nc.L2::cache_hint.v4.b32", "evict_first"),
        ("store Y[0, 0 +: 256] <- x l1 no_allocate l2 evict_last by 16", "st.global.L1::no_allocate.L2::cache_hint.v4.b32", "evict_last"),
        ("store Z[0, 5] <- 1.0 l2 evict_last by 4", "st.global.L2::cache_hint.b32", "evict_last"),
    ],
)
def test_of_the_second_level_a_policy(ptx_of, statement, opcode, policy):
    made, *found = accesses(ptx_of(TEXT.format(statement=statement)))
    assert made == ("", "", f"createpolicy.fractional.L2::{policy}.b64")
    assert found and {f[0] for f in found} == {opcode} and len({f[1] for f in found}) == 1 and found[0][1].startswith(", %d")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("x = load(X[0, 0 +: 256], l1 = never, by = 16)", "type/word"),
        ("x = load(X[0, 0 +: 256], l1 = 3, by = 16)", "type/symbol"),
        ("x = load(s, l1 = no_allocate, by = 16)", "type/option"),
        ("store s <- x l2 evict_first by 16", "type/option"),
        ("store Y[0, 0 +: 256] <- x l2 no_allocate by 16", "type/word"),
    ],
)
def test_refused(typed, statement, code):
    with pytest.raises(CakeError) as error:
        typed(TEXT.format(statement=statement))
    assert [d.code for d in error.value.diagnostics] == [code]
