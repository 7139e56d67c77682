"""Inline blocks: what is written where they are used, and what names mean in them."""

from __future__ import annotations

import pytest

from cake_core.derive import derive
from cake_core.diagnostics import CakeError
from cake_core.elaborate import elaborate
from cake_core.elaborate.inlines import USES
from cake_core.ir.nodes import Program, Role
from cake_core.ir.printer import program_text
from cake_core.plugins import load_registry
from cake_core.source import Source
from cake_core.syntax import parse

REGISTRY = load_registry(environ={"CAKE_LOAD_PLUGINS": ""})
SM90 = REGISTRY.architectures["sm90"]
TEXT = """cake 1
kernel k(R: i32, X: in f32[R, 128], Y: out f32[R, 128])
  require 1 <= R, R <= 1000
  target sm90
{{
  tiles t = persistent(r: R) {{ let half = r / 2 }}
  role main: 1 warp {{
    frag x: f32[128] vec 4, y: f32[128] vec 4
{body}
  }}
}}
"""


def written(body):
    """The statements of the role in the derived form, without its own declarations, one a line."""
    source = Source("k.cake", TEXT.format(body="\n".join("    " + line for line in body.strip("\n").splitlines())))
    kernel = elaborate(parse(source).kernels[0], REGISTRY, SM90, derived=False)
    kernel = derive(kernel, REGISTRY, SM90)
    (role,) = (s for s in kernel.body if isinstance(s, Role))
    text = program_text(Program(1, True, (kernel,)))
    elaborate(parse(Source("derived.cake", text)).kernels[0], REGISTRY, SM90, derived=True)
    lines = text[text.index("role main") :].splitlines()
    return [line.strip() for line in lines[2:] if line.strip() != "}"]


def refused(body):
    with pytest.raises(CakeError) as caught:
        written(body)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def test_names_of_a_block_are_its_own_and_the_same_in_every_use():
    lines = written("""
let c = 2.0
inline twice(z) {
  let c = 3.0
  z = z * c
}
twice(x)
twice(y)
x = x * c
""")
    assert lines == ["let c = 2.0", "let twice_c = 3.0", "x = x * twice_c", "let twice_c = 3.0", "y = y * twice_c", "x = x * c"]


def test_a_name_of_the_text_is_not_taken():
    lines = written("""
let twice_c = 1.0
inline twice(z) {
  let c = 3.0
  z = z * c * twice_c
}
twice(x)
""")
    assert lines[1:] == ["let twice_c_ = 3.0", "x = x * twice_c_ * twice_c"]


def test_an_argument_that_is_computed_is_computed_once():
    lines = written("""
inline add(z, n) {
  z = z + f32(n)
  z = z + f32(n)
}
var k = 1
add(x, k * 3)
add(x, 7)
add(x, k)
""")
    assert lines == [
        "var k = 1",
        "let add_n = k * 3",
        "x = x + f32(add_n)",
        "x = x + f32(add_n)",
        "x = x + f32(7)",
        "x = x + f32(7)",
        "x = x + f32(k)",
        "x = x + f32(k)",
    ]


def test_an_argument_is_no_name_of_the_block():
    """The caller's `c` is not the block's."""
    lines = written("""
let c = 2.0
inline scale(z, by) {
  let c = 3.0
  z = z * by * c
}
scale(x, c)
""")
    assert lines[1:] == ["let scale_c = 3.0", "x = x * c * scale_c"]


def test_a_variable_can_be_passed_and_assigned():
    lines = written("""
var n = 0
inline bump(v) { v = v + 1 }
bump(n)
store Y[n, 0 +: 128] <- x
""")
    assert lines[:2] == ["var n = 0", "n = n + 1"]


def test_variables_of_a_block_are_told_apart():
    lines = written("""
inline count(z) {
  var n = 0
  for i in 0 .. 3 { n = n + i }
  z = z + f32(n)
}
count(x)
count(y)
""")
    assert [s for s in lines if s.startswith("var")] == ["var count1_n = 0", "var count2_n = 0"]
    assert lines.count("for count_i in 0 .. 3 {") == 2


def test_blocks_use_blocks_that_stand_before_them():
    lines = written("""
inline one(z) {
  let c = 1.0
  z = z + c
}
inline two(z) {
  let c = 2.0
  one(z)
  z = z * c
}
two(x)
""")
    assert lines == ["let two_c = 2.0", "let one_c = 1.0", "x = x + one_c", "x = x * two_c"]


def test_values_of_the_item_are_taken_from_the_place_of_use():
    lines = written("""
inline step(z) {
  if half > 3 { z = z + f32(r) }
}
for r in t {
  step(x)
}
""")
    assert lines[1:] == ["let r = t_i", "let half = r / 2", "if half > 3 {", "x = x + f32(r)"]


def test_a_use_in_an_unrolled_loop_folds():
    lines = written("""
inline some(z, n) {
  if n > 0 { z = z + f32(n) }
}
for n in 0 .. 3 unroll { some(x, n) }
""")
    assert lines == ["x = x + f32(1)", "x = x + f32(2)"]


def test_a_name_that_means_something_else_at_the_use_is_refused():
    assert refused("""
let c = 2.0
inline f(z) { z = z * c }
if R > 3 {
  let c = 5.0
  f(x)
}
""") == [("type/inline", "'c' means something else here than in inline 'f'")]


@pytest.mark.parametrize("other", ["var c = 0", "for c in 0 .. 3 { f(x) }"])
def test_a_parameter_hides_nothing_outside(other):
    body = "inline f(c) { c = c * 2.0 }\n" + (other if "f(x)" in other else f"{other}\nf(x)")
    assert "x = x * 2.0" in written(body)


def test_a_block_cannot_use_itself():
    ((code, message),) = refused("inline f(z) { f(z) }\nf(x)")
    assert code == "type/unknown-function" and "'f'" in message


def test_a_block_is_known_in_its_own_block_only():
    ((code, _),) = refused("if R > 3 {\n  inline f(z) { z = z * 2.0 }\n}\nf(x)")
    assert code == "type/unknown-function"


def test_uses_are_bounded():
    chain = ["inline f0(z) { z = z * 2.0 }"] + [f"inline f{i + 1}(z) {{ f{i}(z); f{i}(z); f{i}(z); f{i}(z) }}" for i in range(12)]
    found = refused("\n".join([*chain, "f12(x)"]))
    assert found == [("type/inline", f"inline blocks are used more than {USES} times")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("inline f(z, z) { z = z * 2.0 }", "type/repeated"),
        ("inline f(z) { z = z * 2.0 }\ninline f(z) { z = z * 3.0 }", "type/redefined"),
        ("inline x(z) { z = z * 2.0 }", "type/redefined"),
        ("inline f(z) { z = z * 2.0 }\nf(x, y)", "type/arguments"),
        ("inline f(z) { z = z * 2.0 }\nf(z = x)", "type/arguments"),
        ("inline f(z) { frag q: f32[128] vec 4 }\nf(x)", "type/inline"),
        ("inline f(z) { inline g(w) { w = w * 2.0 } }\nf(x)", "type/inline"),
        ("inline f(z) { z = z * 2.0 }\nf(1.0)", "type/assign"),
        ("load(X[0, 0 +: 128])", "type/unknown-function"),
    ],
)
def test_what_is_refused(body, code):
    assert code in [c for c, _ in refused(body)]


def test_an_error_in_a_block_is_found_once():
    assert len(refused("inline f(z) { z = z * missing }\nf(x)\nf(x)\nf(y)")) == 1
