"""Facts as rows: the schema is what the page says, rows hold what the text does, and counts are those of all CTAs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cake_core.facts import RELATIONS, facts_of, rows_of
from cake_core.facts.listing import document, records
from cake_core.pipeline import frontend
from cake_core.source import Source

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted(ROOT.glob("kernels/*/*.cake"))


@pytest.fixture(scope="module")
def rows(offered):
    def read(text: str, arch=None):
        front = frontend(Source("case.cake", text), offered, arch)
        return rows_of(facts_of(front.typed, offered, front.arch), front.arch, offered)

    return read


def derived(*body: str, before: str = "if leader { mbarrier.init full }", head: str = "", roles: str = "") -> str:
    """A kernel with a role of two warps that fills and one of four that waits."""
    text = "\n".join(f"    {s}" for s in body)
    return f"""cake 1 derived
kernel k(N: i32, A: in bf16[N, 64], D: out bf16[N, 64])
  require 1 <= N, N <= 4096
  target sm90
{head}{{
  launch N
  shared a: bf16[2][64, 64] at 0 swizzle 128
  barrier full: mbarrier[2] count 1 at 16384
  {before}
  role load: 2 warps at 0 pad 2 {{
{text}
  }}
  role math: 1 warpgroup at 4 {{
    mbarrier.wait full[0] parity 0
  }}
{roles}}}
"""


def test_the_page_is_the_schema():
    page = subprocess.run([sys.executable, ROOT / "docs" / "facts.py"], capture_output=True, text=True, check=True).stdout
    assert page == (ROOT / "docs" / "facts.md").read_text(), "python docs/facts.py > docs/facts.md"


def test_every_reference_names_a_relation():
    for relation in RELATIONS.values():
        assert len({c.name for c in relation.columns}) == len(relation.columns)
        for column in relation.columns:
            assert column.sort in ("int", "bool", "text", "expr") or column.sort in RELATIONS, (relation.name, column.name)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_every_kernel_has_rows_that_refer_to_rows(path, rows, offered):
    from cake_core.syntax import parse

    for target in parse(Source(path.name, path.read_text())).kernels[0].targets:
        found = rows(path.read_text(), target)
        for name, relation in RELATIONS.items():
            assert len({r.id for r in found[name]}) == len(found[name]), name
            for row in found[name]:
                for c in relation.columns:
                    if c.name in ("id", "loc"):
                        continue
                    value = row[c.name]
                    assert value is not None or c.optional, (name, row.id, c.name)
                    assert isinstance(value, tuple) == c.many, (name, row.id, c.name)
                    if c.sort in RELATIONS and value is not None:
                        found.find(c.sort, value)
                    if c.values and value is not None:
                        assert value in c.values, (name, c.name, value)
        assert found["event"] and json.dumps(document(found))


def test_an_access_says_what_it_touches_and_when_it_is_complete(rows):
    found = rows(derived("if leader {", "mbarrier.expect full[0] bytes 8192", "tma.load a[0] <- A[0 +: 64, 0 +: 64] signal full[0]", "}"))
    (write,) = [r for r in records(found, "access") if r["mode"] == "write"]
    assert {k: write[k] for k in ("buffer", "space", "proxy", "completes", "barrier", "index", "bytes", "by", "threads", "role")} == {
        "buffer": "a", "space": "shared", "proxy": "async", "completes": "bytes", "barrier": "full", "index": "0", "bytes": 8192, "by": "leader", "threads": 1, "role": "load",
    }  # fmt: skip
    assert write["slot"] == ["0"] and write["lo"] == ["0", "0"] and write["size"] == ["64", "64"]


@pytest.mark.parametrize(
    "text, threads",
    [
        ("mbarrier.arrive full[0]", 64),
        ("if warp.leader { mbarrier.arrive full[0] }", 2),
        ("if leader { mbarrier.arrive full[0] }", 1),
        ("if warp == 1 { mbarrier.arrive full[0] }", 32),
        ("if cluster.id == 0 { mbarrier.arrive full[0] }", 64),
        ("if warp < 1 { mbarrier.arrive full[0] }", None),
    ],
)
def test_executing_threads_are_counted(rows, text, threads):
    found = rows(derived(text))
    assert [r["threads"] for r in records(found, "arrive")] == [threads]
    assert [r["arrivals"] for r in records(found, "handoff")] == [threads]


def test_an_arrival_behind_a_wait_is_another_hand_off(rows):
    one = rows(derived("mbarrier.arrive full[0]", "mbarrier.arrive full[0]"))
    two = rows(derived("mbarrier.arrive full[0]", "mbarrier.wait full[1] parity 0", "mbarrier.arrive full[0]"))
    assert [r["arrivals"] for r in records(one, "handoff")] == [128]
    assert [r["arrivals"] for r in records(two, "handoff")] == [64, 64]


def test_hand_offs_tell_slots_apart_by_what_names_stand_for(rows):
    same = rows(derived("let s = N % 2", "mbarrier.arrive full[s]", "mbarrier.arrive full[N % 2]"))
    other = rows(derived("var n = 0", "mbarrier.arrive full[n % 2]", "n = n + 1", "mbarrier.arrive full[n % 2]"))
    assert [r["arrivals"] for r in records(same, "handoff")] == [128]
    assert [r["arrivals"] for r in records(other, "handoff")] == [64, 64]


def test_bytes_and_arrivals_of_a_cluster_are_counted_where_they_arrive(rows):
    cluster = "  cluster m = 2\n"
    body = (
        "if leader {",
        "mbarrier.arrive full[0] at 0",
        "mbarrier.expect full[1] bytes 4096",
        "tma.load a[1][32 * cluster.m +: 32, :] <- A[32 * cluster.m +: 32, 0 +: 64] signal full[1] mask 3",
        "}",
    )
    found = list(records(rows(derived(*body, head=cluster)), "handoff"))
    assert [(h["rank"], h["arrivals"]) for h in found[:2]] == [(0, 2), (1, 0)]
    assert [(h["rank"], h["expected"], h["bytes"]) for h in found[2:]] == [(0, 4096, 8192), (1, 4096, 8192)]


def _by_rank(rows, *body):
    found = list(records(rows(derived(*body, head="  cluster m = 2\n")), "handoff"))
    return [(h["stretch"], h["rank"], h["arrivals"], h["expected"], h["bytes"]) for h in found]


def test_what_a_rank_decides_is_decided_for_each_cta(rows):
    arrive = ("if leader {", "mbarrier.arrive full[0] at 1 - cluster.m", "}")
    assert _by_rank(rows, *arrive) == [(0, 0, 1, 0, 0), (0, 1, 1, 0, 0)]
    guarded = ("if cluster.m == 1 {", *arrive, "}")
    assert _by_rank(rows, *guarded) == [(0, 0, 1, 0, 0), (0, 1, 0, 0, 0)], "CTA 1 alone arrives, at CTA 0"
    either = ("if cluster.m == 0 {", "mbarrier.arrive full[0] at 0", "} else {", "mbarrier.arrive full[0] at 0", "mbarrier.arrive full[0] at 0", "}")
    assert _by_rank(rows, *either) == [(0, 0, 3 * 64, 0, 0), (0, 1, 0, 0, 0)], "arms that the rank chooses are one stretch"
    chosen = ("if N > 1 {", *arrive, "} else {", *arrive, "}")
    assert [s for s, *_ in _by_rank(rows, *chosen)] == [0, 0, 1, 1], "arms that something else chooses are two"


def test_who_may_come_to_a_statement_is_told_by_rank(rows):
    body = ("mbarrier.wait full[0] parity 0", "if cluster.m == 0 {", "mbarrier.wait full[1] parity 0", "} else {", "if N > 3 {", "warp.sync", "}", "}")
    found = rows(derived(*body, head="  cluster m = 2\n"))
    assert [w["ctas"] for w in records(found, "wait") if w["role"] == "load"] == [[0, 1], [0]]
    assert [m["ctas"] for m in records(found, "meet") if m["role"] == "load"] == [[1]]


def test_a_rank_that_the_text_does_not_tell_is_none(rows):
    assert _by_rank(rows, "if leader {", "mbarrier.arrive full[0] at N % 2", "}") == [(0, 0, None, 0, 0), (0, 1, None, 0, 0)]
    assert _by_rank(rows, "if N % 2 == cluster.m {", "if leader {", "mbarrier.arrive full[0] at 1 - cluster.m", "}", "}")[0][2] == 1


def test_named_barriers_are_decided_for_each_instance(rows):
    role = "  role more[2]: 1 warpgroup at 8 {\n    bar.sync 1 + more.i threads 128\n    if more.i == 1 {\n      bar.arrive 5 threads 256\n    }\n  }\n"
    found = list(records(rows(derived("mbarrier.arrive full[0]", roles=role)), "rendezvous"))
    assert [(r["instance"], r["number"], r["count"], r["waits"]) for r in found] == [
        ("more[0]", 1, 128, True),
        ("more[1]", 2, 128, True),
        ("more[1]", 5, 256, False),
    ]


def test_shares_count_pads_and_idle_warps(rows):
    text = derived("mbarrier.arrive full[0]", roles="  role last: 1 warp at 12 {\n    mbarrier.wait full[0] parity 0\n  }\n")
    assert [(s["holder"], s["threads"]) for s in records(rows(text), "share")] == [
        ("load", 128),
        ("math", 128),
        ("last", 32),
        ("idle", 128),
    ]


def test_the_command_prints_rows_and_refuses_an_unknown_relation(tmp_path):
    from click.testing import CliRunner

    from cake_core.cli.app import app

    path = tmp_path / "k.cake"
    path.write_text(derived("mbarrier.arrive full[0]"))
    result = CliRunner().invoke(app, ["facts", str(path), "--relation", "arrive", "--json"])
    assert result.exit_code == 0 and [r["barrier"] for r in json.loads(result.output)["facts"]["arrive"]] == ["full"]
    result = CliRunner().invoke(app, ["facts", str(path), "--relation", "barrier"])
    assert result.exit_code == 0 and "full" in result.output
    assert CliRunner().invoke(app, ["facts", str(path), "--relation", "nope"]).exit_code == 2
    path.write_text("cake 1\nkernel k(\n")
    assert CliRunner().invoke(app, ["facts", str(path)]).exit_code == 1


def test_what_conditions_and_bounds_read_is_there(rows):
    body = (
        "while load(n[0], by = 4) < 3 { fence.proxy.async }",
        "if load(n[1], by = 4) == 1 { fence.proxy.async }",
        "for j in 0 .. load(n[2], by = 4) { fence.proxy.async }",
    )
    found = rows(derived(*body, head="").replace("  barrier full", "  shared n: i32[4] at 32768\n  barrier full"))
    reads = [(a["op"], a["lo"][0].value, a["loop"] is not None) for a in found["access"] if a["buffer"] == "n"]
    assert reads == [("load", 0, False), ("load", 0, True), ("load", 1, False), ("load", 2, False)], "a `while` asks again behind each round"


SPECIAL = """cake 1 derived
kernel k(N: i32, X: in f32[N, 256], Y: out f32[N, 256])
  require 1 <= N, N <= 4096
  target sm90
{
  launch N
  shared top: f32[1] at 0
  role main: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    x = load(X[cluster.id, 0 +: 256], fill = 0, by = 16)
    BODY
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
"""


@pytest.mark.parametrize(
    ("body", "nan", "unmasks"),
    [
        ("x = x - warpmax(x)", False, False),  # elements of tensors are ordinary
        ("x = where(x > 0.0, x, -inf)\n    x = x - warpmax(x)", True, False),
        ("x = where(x > 0.0, x, -inf)\n    x = x * 2.0 - warpmax(x) * 2.0", True, False),
        ("x = where(x > 0.0, x, -inf)\n    x = x * (-2.0) - warpmax(x)", False, False),
        ("x = where(x > 0.0, x, -inf)\n    x = x * (-2.0) + warpmax(x)", True, False),
        ("x = where(x > 0.0, x, -inf)\n    x = exp2(x) - exp2(warpmax(x))", False, False),
        ("x = where(x > 0.0, x, -inf)\n    x = x - max(warpmax(x), -1.0e4)", False, False),
        ("x = where(x > 0.0, x, -1.0e38)\n    x = x - warpmax(x)", False, True),
        ("x = where(x > 0.0, x, -1.0e38)\n    x = x - max(warpmax(x), 0.0)", False, False),
        ("x = where(x > 0.0, x, -inf)\n    x = where(x - warpmax(x) > -1.0, x, 0.0)", False, False),  # only compared
        ("x = where(x > 0.0, x, -inf)\n    x = x + where(x == -inf, 0.0, x)", False, False),
        ("x = where(x > 0.0, x, -inf)\n    let t = warpmax(x)\n    x = x - (t == -inf ? 0.0 : t)", False, False),
        ("x = where(x > 0.0, x, -inf)\n    let t = warpmax(x)\n    x = x - (t == -inf ? t : 0.0)", True, False),
        ("x = where(x > 0.0, x, -inf)\n    store top[0] <- warpmax(x) by 4\n    warp.sync\n    x = x - load(top[0], by = 4)", True, False),
        ("var m = 0.0\n    for k in 0 .. N {\n      x = x - m\n      m = m + 1.0\n    }", False, False),
        ("var m = -inf\n    x = where(x > 0.0, x, -inf)\n    for k in 0 .. N {\n      x = x - m\n      m = max(m, warpmax(x))\n    }", True, False),
        ("x = where(x > 0.0, x, +inf)\n    x = x - warpmin(x)", True, False),
    ],
)
def test_what_is_made_of_infinities(body, nan, unmasks, rows):
    made = rows(SPECIAL.replace("BODY", body))["special"]
    assert (any(r["nan"] for r in made), any(r["unmasks"] for r in made)) == (nan, unmasks)


CUT = """cake 1 derived
kernel k(N: i32, CAP: i32, V: in bf16[CAP, 64], D: out f32[64, 64])
  require 1 <= N, N <= CAP, CAP <= 4096
  target sm90
{
  launch 1
  shared v: bf16[1][64, 64] at 0 swizzle 128
  barrier full: mbarrier[1] count 1 at 8192
  role load: 1 warp at 0 {
    if leader {
      tma.load v[0] <- V[0 +: 64, 0 +: 64] signal full[0]
    }
  }
  role math: 1 warpgroup at 4 {
    frag acc: f32[64, 64] layout mma, w: f32[64, 64] layout mma, p: bf16[64, 64] layout mma
    acc = 0.0
    w = 1.0
    BODY
    p = bf16(w)
    mbarrier.wait full[0] parity 0
    wgmma.fence
    wgmma acc += p @ FACTOR
    wgmma.commit
    wgmma.wait 0
    store D[0 +: 64, 0 +: 64] <- acc by 8
  }
}
"""


@pytest.mark.parametrize(
    ("body", "factor", "found"),
    [
        ("w = where(cols(w) < N, w, 0.0)", "v[0]", [("N", "V", "CAP")]),
        ("w = where(cols(w) < N, w, 0.0)", "v[0].T", [("N", "V", "64")]),
        ("let c = cols(w) + 1\n    w = where(N > c, w, 0.0)", "v[0]", [("N", "V", "CAP")]),
        ("w = where(cols(w) < N and w > 0.0, w * 2.0, 0.0)", "v[0]", [("N", "V", "CAP")]),
        ("w = exp2(where(cols(w) < N, w, -inf))", "v[0]", [("N", "V", "CAP")]),
        ("w = where(cols(w) < N, w, 1.0)", "v[0]", []),
        ("w = where(rows(w) < N, w, 0.0)", "v[0]", []),
        ("w = where(w < 0.5, w, 0.0)", "v[0]", []),
        ("w = where(cols(w) < rows(w), w, 0.0)", "v[0]", []),
        ("w = w * 2.0", "v[0]", []),
    ],
)
def test_products_with_what_a_mask_leaves_out(body, factor, found, rows):
    from cake_core.ir.printer import expr_text

    masked = rows(CUT.replace("BODY", body).replace("FACTOR", factor))["masked"]
    assert [(expr_text(r["bound"]), r["tensor"], expr_text(r["extent"])) for r in masked] == found


def test_a_tile_of_one_element_in_a_scalar(rows):
    found = rows(derived("let y = sum(load(c[warp +: 1], by = 4)) + 1.0", before="shared c: f32[4] at 20480\n  if leader { mbarrier.init full }"))
    (read,) = (r for r in found["access"] if r.site.act.region.name == "c")
    assert read["mode"] == "read"
