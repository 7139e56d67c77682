"""Roles: each warp runs the body of the role that it belongs to, with its own place in it, and all meet behind the roles."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cake_core.diagnostics import CakeError

HEAD = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  trace 1000\n"


def text(roles, behind="trace 2000"):
    """`roles`: (name, instances, warps, first, pad, words, body)."""
    lines = []
    for name, n, warps, first, pad, words, body in roles:
        words, _, flag = words.partition("|")
        header = f"  role {name}{f'[{n}]' if n > 1 else ''}: {warps} warps at {first} {words}"
        lines.append(f"{header.rstrip()}{f' pad {pad}' if pad else ''} {flag}{{\n{body}\n  }}")
    return HEAD + "\n".join(lines) + f"\n  {behind}\n}}\n"


@st.composite
def layouts(draw):
    """Roles side by side, with gaps, pads, and a role that lives in another's pads."""
    roles, at, names = [], 0, iter("abcdefgh")
    for _ in range(draw(st.integers(1, 3))):
        at += draw(st.integers(0, 2))
        instances, warps, pad = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
        budget = draw(st.booleans())
        roles.append([next(names), instances, warps, at, pad, "budget 40" if budget else ""])
        end = at + instances * warps
        if pad and draw(st.booleans()):
            inner = draw(st.integers(0, pad - 1))
            roles.append([next(names), 1, draw(st.integers(1, pad - inner)), end + inner, 0, ""])
        at = end + pad
    return draw(st.permutations(roles))


def expected(roles, warp, lane):
    """What a thread records: its role's number, instance, warp and thread in the instance."""
    for number, (_, instances, warps, first, _, _) in enumerate(roles):
        if first <= warp < first + instances * warps:
            i, w = divmod(warp - first, warps)
            return [number, i, w, 32 * w + lane, lane, w]
    return []


@pytest.mark.parametrize("pinned", [False, True], ids=["once", "an instance"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts(), st.integers(0, 31))
def test_every_warp_runs_its_role(lowered, run, pinned, roles, lane):
    """Whether a role is written once or once an instance changes nothing; nor does the order in the text."""
    body = "trace {n}\n{op} {i}\nwhere\ntrace warp"
    described = [(*r, body.format(n=n, i=f"{r[0]}.i", op="pinned" if pinned else "trace")) for n, r in enumerate(roles)]
    low = lowered(text(described))
    assert low.plan.warps == max(r[3] + r[1] * r[2] + r[4] for r in roles)
    for warp in range(low.plan.warps):
        m = run(low, warp=warp, lane=lane, N=0)
        assert m.trace == [1000, *expected(roles, warp, lane), 2000]
        budgets = [40 for _, n, w, first, pad, words in roles if words and first <= warp < first + n * w + pad]
        assert m.budgets == budgets


def test_leaders(lowered, run):
    """`leader` is one thread of each instance, `warp.leader` one of each warp; before and behind the roles, of the CTA."""
    see = "trace leader\ntrace warp.leader"
    low = lowered(
        HEAD.replace("trace 1000", see) + f"  role a[2]: 2 warps at 1 {{\n{see}\n  }}\n  role b: 1 warp at 0 {{\n{see}\n  }}\n{see}\n}}\n"
    )
    for warp in range(5):
        for lane in (0, 1):
            cta = [warp == 0 and lane == 0, lane == 0]
            inner = [(warp - 1) % 2 == 0 and lane == 0 if warp else lane == 0, lane == 0]
            assert run(low, warp=warp, lane=lane, N=0).trace == [*cta, *inner, *cta]


@pytest.mark.parametrize(
    "body, copies",
    [
        ("pinned 1", 1),
        ("pinned a.i", 2),
        ("let id = 1 + a.i\nlet other = id * 2\npinned other", 2),
        ("for i in 0 .. 3 { if N > 2 { let x = a.i\npinned x } }", 2),
        ("trace a.i", 1),
        ("let id = a.i\ntrace id\npinned 4", 1),
    ],
)
def test_a_role_is_written_once_an_instance_only_where_it_must_be(lowered, body, copies):
    low = lowered(text([("a", 2, 1, 0, 0, "", body + "\ntrace 77")]))
    assert low.ptx.count("test.trace 77;") == copies


def test_a_role_that_is_written_once(lowered):
    """Its instance is a register that is the same in a warp; what must be a constant in each instance is refused."""
    low = lowered(text([("a", 2, 1, 0, 0, "|once ", "trace a.i\ntrace 77")]))
    assert low.ptx.count("test.trace 77;") == 1 and low.ptx.count("shfl.sync.idx.b32") == 1
    with pytest.raises(CakeError) as error:
        lowered(text([("a", 2, 1, 0, 0, "|once ", "pinned a.i")]))
    assert [d.code for d in error.value.diagnostics] == ["derive/not-constant"]


@pytest.mark.parametrize(
    "roles",
    [
        [("a", 1, 4, 0, 0, "", ""), ("b", 1, 1, 3, 0, "", "")],
        [("a", 1, 1, 0, 3, "", ""), ("b", 1, 4, 2, 0, "", "")],
        [("a", 1, 1, 0, 3, "budget 40", ""), ("b", 1, 1, 2, 0, "budget 24", "")],
    ],
    ids=["warps", "past the pads", "words in pads"],
)
def test_roles_that_share_warps_are_refused(lowered, roles):
    with pytest.raises(CakeError) as error:
        lowered(text([(*r[:6], "trace 1") for r in roles]))
    (d,) = error.value.diagnostics
    assert d.code == "derive/overlapping-roles" and d.related


def test_findings_of_all_roles_come_together(lowered):
    bad = "pinned N"
    with pytest.raises(CakeError) as error:
        lowered(text([("a", 1, 1, 0, 0, "", bad), ("b", 1, 1, 1, 0, "", "trace 1"), ("c", 1, 1, 2, 0, "", bad)]))
    assert [(d.code, d.role) for d in error.value.diagnostics] == [("derive/not-constant", "a"), ("derive/not-constant", "c")]


def test_lines_know_their_role(lowered):
    low = lowered(text([("a", 1, 1, 0, 0, "", "trace 1"), ("b", 1, 1, 1, 0, "", "trace 2")]))
    owners = {line.strip(): owner for line, owner in zip(low.ptx.splitlines(), low.roles_of_lines, strict=True) if "test.trace" in line}
    assert owners == {"test.trace 1000;": None, "test.trace 1;": "a", "test.trace 2;": "b", "test.trace 2000;": None}


CLUSTER = """cake 1 derived
kernel k(N: i32)
  target sm90
  cluster m = 2
{
  launch 1
  role r: 1 warp at 0 {
    trace cluster.m
    trace cluster.id
    trace cluster.count
  }
}
"""


def test_cluster_names(lowered, run):
    low = lowered(CLUSTER)
    assert run(low, cluster=(1, 7, 66), N=0).trace == [1, 7, 66]
    assert ".reqnctapercluster 2, 1, 1" in low.ptx
