"""Verdicts: relations with arithmetic and predicates, paths over loops, branches and hand-offs, protocols."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cake_core.rules import Answer, Given, Outcome, Standing, judge, load_rule
from cake_core.rules.predicates import PROVED, unknown

HEAD = """schema: 1
id: acme/x
title: X
kind: safety
level: {level}
status: {status}
precision: proof
since: "0.1"
owner: someone
why: It is.
message: it is broken
"""

KERNEL = """cake 1 derived
kernel k(N: i32, M: i32, A: in bf16[N, 64])
  require 1 <= N, N <= 4096, N % 8 == 0, 0 <= M, M <= 64
  target sm90
{
  launch N
  shared a: bf16[2][64, 64] at 0 swizzle 128
  shared g: f32[256] at 16448
  barrier full: mbarrier[2] count 1 at 16384, done: mbarrier[2] count 128 at 16400
  BEFORE
  role load: 1 warp at 0 {
    LOAD
  }
  role math: 1 warpgroup at 4 {
    MATH
  }
  AFTER
}
"""
INIT = "if leader { mbarrier.init full; mbarrier.init done; fence.mbarrier_init }"


def kernel(load: str = "warp.sync", math: str = "warp.sync", before: str = f"{INIT}; cta.sync", after: str = "cta.sync") -> str:
    return KERNEL.replace("BEFORE", before).replace("LOAD", load).replace("MATH", math).replace("AFTER", after)


@pytest.fixture
def verdicts(tmp_path, rows_from):
    """`verdicts(yaml, text)`: of a rule with these keys. `predicates`: who answers."""

    def run(body: str, text: str, predicates=None, level="error", status="stable"):
        path = tmp_path / "rule.yaml"
        path.write_text(HEAD.format(level=level, status=status) + body)
        return judge([load_rule(path)], rows_from(text), predicates)

    return run


def told(found) -> str:
    """All that is said of the first verdict."""
    d = found[0].finding
    shown = getattr(d, "witness", None)
    witness = [] if shown is None else [*(f"{n} = {v}" for n, v in shown.params), *shown.story]
    return " | ".join([d.message, d.why or "", *witness])


def outcome(found) -> Outcome:
    (one,) = {v.outcome for v in found}
    return one


# --- arithmetic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "require, load, expected, said",
    [
        ("r.expr", "warp.sync", Outcome.PROVED, ""),
        ("k.items % 8 == 0", "warp.sync", Outcome.PROVED, ""),
        ("k.items % 16 == 0", "warp.sync", Outcome.VIOLATED, "N = "),
        ("k.items < 4097 and k.items > 0", "warp.sync", Outcome.PROVED, ""),
        ("k.items * k.items >= k.items", "warp.sync", Outcome.PROVED, ""),
        ("implies(k.items > 8, k.items >= 16)", "warp.sync", Outcome.PROVED, ""),
        ("ceildiv(k.items, 3) * 3 >= k.items", "warp.sync", Outcome.PROVED, ""),
        ("max(k.items, 5000) == 5000", "warp.sync", Outcome.PROVED, ""),
        ("forall s in arrive: s.index < 2", "for i in 0 .. N { mbarrier.arrive full[i % 2] }", Outcome.PROVED, ""),
        ("forall s in arrive: s.index < 2", "for i in 0 .. N { mbarrier.arrive full[i % 3] }", Outcome.VIOLATED, "i = "),
        ("forall s in arrive: s.index < 2", "for i in 0 .. N step 2 { mbarrier.arrive full[i % 4 / 2] }", Outcome.PROVED, ""),
        ("forall s in arrive: s.index < 2", "for i in 0 .. N step 2 { mbarrier.arrive full[i % 4] }", Outcome.VIOLATED, "i = "),
        ("forall s in arrive: s.index < 2", "if M < 2 { mbarrier.arrive full[M] }", Outcome.PROVED, ""),
        ("forall s in arrive: s.index < 2", "if M < 2 { warp.sync } else { mbarrier.arrive full[M % 2 + 1] }", Outcome.VIOLATED, "M = "),
        ("forall s in arrive: s.index < 2", "mbarrier.arrive full[M]", Outcome.VIOLATED, "M = "),
        ("forall s in arrive: s.index < 2", "var n = 0; for i in 0 .. N { mbarrier.arrive full[n]; n = 1 - n }", Outcome.UNKNOWN, "'n'"),
        ("forall s in arrive: s.index % 2 == s.index", "var n = 0; for i in 0 .. N { mbarrier.arrive full[n % 2]; n = n + 1 }", Outcome.PROVED, ""),
        ("forall s in arrive: s.index < 2", "for i in 0 .. N { mbarrier.arrive full[clamp(i, 0, 1)] }", Outcome.PROVED, ""),
        ("exists s in arrive: s.index == 0 and k.items > 4000", "if N > 4000 { mbarrier.arrive full[N - N] }", Outcome.VIOLATED, "N = "),
        ("(forall s in arrive: s.index < 2) and k.items > 8", "if N > 8 { mbarrier.arrive full[M % 2] }", Outcome.VIOLATED, "N = 8"),
        ("(forall s in arrive: s.index < 2) and k.items > 8", "for i in 8 .. N { mbarrier.arrive full[i % 2] }", Outcome.VIOLATED, "N = 8"),
        ("forall s in arrive: s.index == load.i", "mbarrier.arrive full[0]", None, ""),
    ],
)
def test_arithmetic_over_parameters(verdicts, require, load, expected, said):
    body = f"match: {{k: {{kernel: {{}}}}, r: {{require: {{}}}}}}\nwhere: r.id == '0'\nrequire: \"{require}\"\n"
    if expected is None:
        from cake_core.diagnostics import CakeError

        with pytest.raises(CakeError):
            verdicts(body, kernel(load))
        return
    found = verdicts(body, kernel(load))
    assert outcome(found) is expected
    if said:
        assert said in told(found)


@pytest.mark.parametrize(
    "text",
    [
        "n == n0",
        "n < 0",
        "n >= 8",
        "n % 8 == 0",
        "n % 8 == 1",
        "n % 16 == 0",
        "n > 4088",
        "not n < 0",
        "n < 0 or n >= 8",
        "n < 0 and n > 9",
        "-n < -7",
        "min(n, 5) == 5",
        "max(n, 5000) == 5000",
        "ceildiv(n, 8) >= 1",
        "n / 8 <= 512",
        "n * n >= 64",
        "n != 9",
    ],
)
def test_intervals_and_congruences_are_never_wrong(text):
    """What is decided without the solver holds, or fails, for each value that the type admits."""
    from cake_core.ir.nodes import Binary, Call, Int, Name, Unary
    from cake_core.ir.ranges import Range
    from cake_core.ir.types import I32, Level, Scalar
    from cake_core.rules import ast
    from cake_core.rules.bounds import surely
    from cake_core.rules.parser import parse, passage

    n = Name("n", type=Scalar(I32, Level.CTA, Range(8, 4096, 8, 0)))

    def kernels(x):
        match x:
            case ast.Name(id):
                return n if id == "n" else Name(id)
            case ast.Literal(v):
                return Int(v)
            case ast.Unary(op, a):
                return Unary(op, kernels(a))
            case ast.Binary(op, a, b):
                return Binary(op, kernels(a), kernels(b))
            case ast.Call(name, args):
                return Call(Name(name), tuple(map(kernels, args)))

    python = text.replace("ceildiv(n, 8)", "(-(-n // 8))").replace(" / ", " // ")
    values = {eval(python, {"n": v, "n0": 8, "min": min, "max": max}) for v in range(8, 4097, 8)}
    said = surely(kernels(parse(passage(text))))
    assert said is None or values == {said}
    assert said is not None or len(values) == 2 or text == "n * n >= 64", "this much is decided"


def test_conditions_on_parameters_are_assumed(verdicts):
    body = "match: {k: {kernel: {}}}\nassume: k.items > 4088\nrequire: k.items == 4096\n"
    assert outcome(verdicts(body, kernel())) is Outcome.PROVED
    assert outcome(verdicts(body.replace("4088", "4080"), kernel())) is Outcome.VIOLATED
    assert outcome(verdicts(body.replace("> 4088", "> 5000"), kernel())) is Outcome.INAPPLICABLE, "nothing fulfils it"
    in_where = body.replace("assume: k.items > 4088", "where: k.items > 4088 or k.items < 0")
    assert outcome(verdicts(in_where, kernel())) is Outcome.PROVED


def test_contradicting_requires_prove_nothing(verdicts):
    body = "match: {k: {kernel: {}}}\nrequire: k.items % 16 == 0\n"
    found = verdicts(body, kernel().replace("N % 8 == 0", "N > M, M > N"))
    assert outcome(found) is Outcome.UNKNOWN and "rules/undecided" == found[0].finding.code


def test_the_solvers_budget_is_an_unknown(verdicts):
    body = "match: {k: {kernel: {}}, r: {require: {}}}\nwhere: r.id == '0'\nbudget: {rlimit: 50}\nrequire: k.items * k.items * k.items * k.items != 7 * k.items * k.items + k.items * 16 + 64\n"
    found = verdicts(body, kernel())
    assert outcome(found) is Outcome.UNKNOWN and "budget of 50" in found[0].finding.message


def test_no_solver_is_loaded_where_none_is_needed():
    code = """
import sys
from pathlib import Path
from cake_core.facts import facts_of, rows_of
from cake_core.pipeline import frontend
from cake_core.plugins import load_registry
from cake_core.rules import find_packs, judge
from cake_core.rules.check import asks
from cake_core.source import Source
registry = load_registry()
front = frontend(Source("k.cake", Path("kernels/gemm/gemm_sm90.cake").read_text()), registry)
rows = rows_of(facts_of(front.typed, registry, front.arch), front.arch, registry)
rules = [r for p in find_packs() for r in p.rules if not asks(getattr(r.shape, "require", None), r.definitions)]
before = "z3" in sys.modules
assert {str(v.outcome) for v in judge(rules, rows)} == {"proved", "inapplicable"} and len(rules) > 20
assert before or "z3" not in sys.modules
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
    nothing = "from cake_core.cli.app import app; from click.testing import CliRunner; CliRunner().invoke(app, ['--help'])"
    light = "assert not {'z3', 'yaml', 'lark', 'cake_core.rules'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"import sys, cake_core.runtime; {nothing}; {light}"], cwd=root, check=True)


# --- predicates --------------------------------------------------------------------------------------------------


class Answers:
    """A prover that answers as it is told and keeps what it was asked."""

    def __init__(self, **answers: Answer):
        self.answers, self.asked = answers, []

    def __getattr__(self, name):
        def ask(*args, given=()):
            if name == "may_hold":  # what every rule starts from
                return PROVED
            self.asked.append((name, [getattr(a, "id", a) for a in args], given))
            return self.answers[name]

        return ask


VIOLATED = Answer(Standing.VIOLATED, "two waits at once", (("N", 8),), ("load waits", "math waits"))
COPY = "if leader { mbarrier.expect full[0] bytes 8192; tma.load a[0] <- A[0 +: 64, 0 +: 64] signal full[0] }"
RACE = "match: {a: {access: {mode: write}}, w: {wait: {}}}\nrequire: implies(same_slot(a, a) and w.index == 0, ordered(a, w))\n"


def test_a_predicate_gets_the_conditions_of_its_rule(verdicts):
    prover = Answers(ordered=PROVED)
    assert outcome(verdicts(RACE, kernel(COPY, "mbarrier.wait full[0] parity 0"), prover)) is Outcome.PROVED
    ((name, _, given),) = prover.asked
    assert name == "ordered" and [g.name for g in given] == ["same_slot"] and isinstance(given[0], Given)


def test_a_violation_tells_witness_and_story(verdicts):
    found = verdicts(RACE, kernel(COPY, "mbarrier.wait full[0] parity 0"), Answers(ordered=VIOLATED))
    assert outcome(found) is Outcome.VIOLATED
    for word in ("two waits at once", "load waits", "math waits", "N = 8"):
        assert word in told(found)


def test_what_a_prover_does_not_know_is_no_proof(verdicts):
    (found,) = verdicts(RACE, kernel(COPY, "mbarrier.wait full[0] parity 0"), Answers(ordered=unknown("it is too hard")))
    assert found.outcome is Outcome.UNKNOWN and found.finding.code == "rules/undecided" and "too hard" in found.finding.message


STORE = "frag x: f32[256] vec 2 layout vector; x = 1.0; store g <- x by 8"


@pytest.mark.parametrize(
    "require, math, holds",
    [
        ("fenced(w, m, proxy_async)", f"{STORE}; fence.proxy.async; bar.sync 1 threads 128", True),
        ("fenced(w, m, proxy_async)", f"{STORE}; bar.sync 1 threads 128", False),
        ("fenced(w, m, proxy_async)", f"{STORE}; if leader {{ fence.proxy.async }}; bar.sync 1 threads 128", False),
        ("fenced(w, m, registers)", f"{STORE}; fence.proxy.async; bar.sync 1 threads 128", False),
        ("dominates(s, m)", "mbarrier.arrive done[0]; bar.sync 1 threads 128", True),
        ("dominates(s, m)", "if M > 2 { mbarrier.arrive done[0] }; bar.sync 1 threads 128", False),
        ("dominates(s, m)", "if leader { mbarrier.arrive done[0] }; bar.sync 1 threads 128", False),
    ],
)
def test_predicates_about_ways_need_no_prover(verdicts, require, math, holds):
    start = "w: {access: {mode: write, space: shared}}" if "fenced" in require else "s: {arrive: {}}"
    body = f"match: {{{start}, m: {{meet: {{scope: named}}}}}}\nrequire: {require}\n"
    assert outcome(verdicts(body, kernel(math=math))) is (Outcome.PROVED if holds else Outcome.VIOLATED)


def test_of_alternatives_one_proof_is_enough_and_several_doubts_are_unknown(verdicts):
    body = "match: {w: {wait: {}}}\nrequire: phase_safe(w) or ordered(w, w)\n"
    text = kernel(math="mbarrier.wait full[0] parity 0")
    assert outcome(verdicts(body, text, Answers(phase_safe=VIOLATED, ordered=PROVED))) is Outcome.PROVED
    assert outcome(verdicts(body, text, Answers(phase_safe=VIOLATED, ordered=VIOLATED))) is Outcome.UNKNOWN


def test_a_rule_without_a_fact_to_match_is_inapplicable(verdicts):
    assert outcome(verdicts(RACE, kernel(), Answers())) is Outcome.INAPPLICABLE


def test_a_capability_that_the_target_lacks_makes_a_rule_inapplicable(verdicts):
    body = "match: {k: {kernel: {}}}\nrequire: k.warps == 0\napplies: {capability: [%s]}\n"
    assert outcome(verdicts(body % "no-such", kernel())) is Outcome.INAPPLICABLE
    assert outcome(verdicts(body % "tma", kernel())) is Outcome.VIOLATED


def test_level_and_status_decide_how_a_finding_counts(verdicts):
    body = "match: {k: {kernel: {}}}\nrequire: k.warps == 0\n"
    severities = {
        (lv, st): verdicts(body, kernel(), level=lv, status=st)[0].finding.severity
        for lv in ("error", "warning", "info")
        for st in ("stable", "preview")
    }
    assert severities == {("error", "stable"): "error", ("error", "preview"): "warning", ("warning", "stable"): "warning", ("warning", "preview"): "warning", ("info", "stable"): "note", ("info", "preview"): "note"}  # fmt: skip
    assert verdicts(body, kernel(), level='"off"') == []


def test_a_value_that_is_not_there_is_an_error_of_the_rule(verdicts):
    found = verdicts("match: {b: {buffer: {}}}\nrequire: b.offset + 1 > 0\n", kernel())
    assert outcome(found) is Outcome.ERROR and found[0].finding.code == "rules/failed" and "no value" in found[0].finding.message


# --- paths -------------------------------------------------------------------------------------------------------

#: From an arrival of `load` to a named meeting, a fence must stand.
FENCED = "from: {arrive: {}}\nto: {meet: {scope: named}}\nmust_pass: {fence: {kind: proxy_async}}\nwithin: agent\n"
ARRIVE, FENCE, MEET = "mbarrier.arrive done[0]", "fence.proxy.async", "bar.sync 1 threads 128"


@pytest.mark.parametrize(
    "ways, holds",
    [
        (f"{ARRIVE}; {FENCE}; {MEET}", True),
        (f"{ARRIVE}; {MEET}", False),
        (f"{FENCE}; {ARRIVE}; {MEET}", False),
        (f"{ARRIVE}; {FENCE}; {ARRIVE}; {MEET}", False),
        (f"{MEET}; {ARRIVE}", None),
        (f"{ARRIVE}; for i in 0 .. N {{ {FENCE} }}; {MEET}", False),
        (f"{ARRIVE}; for i in 0 .. 3 {{ {FENCE} }}; {MEET}", True),
        (f"{ARRIVE}; for i in 3 .. 3 {{ {FENCE} }}; {MEET}", False),
        (f"for i in 0 .. N {{ {MEET}; {ARRIVE} }}", False),
        (f"for i in 0 .. N {{ {MEET}; {ARRIVE}; {FENCE} }}", True),
        (f"for i in 0 .. N {{ {FENCE}; {MEET}; {ARRIVE} }}", True),
        (f"{ARRIVE}; if M > 2 {{ {FENCE} }}; {MEET}", False),
        (f"{ARRIVE}; if M > 2 {{ {FENCE} }} else {{ {FENCE} }}; {MEET}", True),
        (f"if M > 2 {{ {ARRIVE} }}; if M > 2 {{ {FENCE} }}; {MEET}", True),
        (f"if M > 2 {{ {ARRIVE} }}; if M > 3 {{ {FENCE} }}; {MEET}", False),
        (f"if M > 2 {{ {ARRIVE} }}; if M > 2 {{ warp.sync }} else {{ {FENCE} }}; {MEET}", False),
        (f"{ARRIVE}; if M > 2 {{ {FENCE} }}; if M > 2 {{ {MEET} }}", True),
        (f"for i in 0 .. N {{ if i > 2 {{ {ARRIVE} }}; if i > 2 {{ {FENCE} }}; {MEET} }}", True),
        (f"for i in 0 .. N {{ if i > 2 {{ {ARRIVE} }}; if i > 2 {{ warp.sync }}; {MEET}; {FENCE} }}", False),
        (f"var n = 0; if n > 2 {{ {ARRIVE} }}; n = M; if n > 2 {{ {FENCE} }}; {MEET}", False),
    ],
)
def test_ways_through_loops_and_branches(verdicts, ways, holds):
    found = verdicts(FENCED, kernel(math=ways))
    assert outcome(found) is {True: Outcome.PROVED, False: Outcome.VIOLATED, None: Outcome.INAPPLICABLE}[holds]


@pytest.mark.parametrize(
    "of, by, holds",
    [
        ("each writer", FENCE, True),
        ("each writer", f"if leader {{ {FENCE} }}", False),
        ("each writer", f"if warp.leader {{ {FENCE} }}", False),
        ("each writer", f"if warp == 1 {{ {FENCE} }}", False),
        ("issuer", FENCE, True),
        ("issuer", f"if leader {{ {FENCE} }}", False),
        ("anyone", f"if leader {{ {FENCE} }}", True),
    ],
)
def test_who_executes_what_is_passed(verdicts, of, by, holds):
    found = verdicts(FENCED + f"of: {of}\n", kernel(math=f"{ARRIVE}; {by}; {MEET}"))
    assert (outcome(found) is Outcome.PROVED) == holds


def test_what_the_leader_does_the_leader_alone_must_fence(verdicts):
    text = kernel(math=f"if leader {{ {ARRIVE} }}; if leader {{ {FENCE} }}; {MEET}")
    assert outcome(verdicts(FENCED + "of: each writer\n", text)) is Outcome.PROVED
    assert outcome(verdicts(FENCED + "of: issuer\n", text)) is Outcome.VIOLATED


CHAIN = "from: {assign: {name: x}}\nto: {meet: {scope: named}}\nmust_pass: {fence: {kind: proxy_async}}\nof: %s\n"
SEND = "var x = 0; for i in 0 .. N {{ x = x + 1; {} mbarrier.arrive full[x % 2] }}"
TAKE = f"for i in 0 .. N {{{{ mbarrier.wait full[i % 2] parity 0; {{}} {MEET} }}}}"


@pytest.mark.parametrize(
    "of, sent, taken, holds",
    [
        ("each writer", f"{FENCE};", "", True),
        ("each writer", "", f"{FENCE};", False),
        ("issuer", "", f"{FENCE};", True),
        ("issuer", f"{FENCE};", "", True),
        ("each writer", "", "", False),
        ("anyone", f"if leader {{ {FENCE} }};", "", True),
    ],
)
def test_ways_lead_over_barriers_to_other_roles(verdicts, of, sent, taken, holds):
    found = verdicts(CHAIN % of, kernel(SEND.format(sent), TAKE.format(taken)))
    assert (outcome(found) is Outcome.PROVED) == holds
    if not holds:
        assert "handed over by 'full'" in found[0].finding.why


def test_ways_lead_over_meetings_and_before_and_behind_the_roles(verdicts):
    rule = "from: {init: {}}\nto: {wait: {}}\nmust_pass: {meet: {scope: cta}}\nof: issuer\n"
    text = kernel(math="mbarrier.wait full[0] parity 0")
    assert outcome(verdicts(rule, text)) is Outcome.PROVED
    assert outcome(verdicts(rule, kernel(math="mbarrier.wait full[0] parity 0", before=INIT))) is Outcome.VIOLATED
    ends = "from: start\nto: end\nmust_pass: {meet: {scope: cta}}\n"
    assert outcome(verdicts(ends, text)) is Outcome.PROVED
    assert outcome(verdicts(ends, kernel(before=INIT, after="warp.sync"))) is Outcome.VIOLATED


def test_where_says_which_pairs(verdicts):
    text = kernel(math=f"mbarrier.arrive done[0]; mbarrier.arrive full[0]; {MEET}")
    found = verdicts(FENCED + "where: from.barrier == done\n".replace("done", "'done'"), text)
    assert len(found) == 1 and outcome(found) is Outcome.VIOLATED


# --- protocols ---------------------------------------------------------------------------------------------------

LIFE = "shape: protocol\nresource: {barrier: {id: full}}\nevents: {make: {init: {barrier: resource}}, wait: {wait: {barrier: resource}}, give: {arrive: {barrier: resource}}}\nautomaton: %s\n"
WAIT, GIVE = "mbarrier.wait full[0] parity 0", "mbarrier.arrive full[0]"


@pytest.mark.parametrize(
    "automaton, load, expected",
    [
        ("make (wait | give)*", f"{WAIT}; {GIVE}", Outcome.PROVED),
        ("make (wait give)*", f"{WAIT}; {GIVE}", Outcome.PROVED),
        ("make (wait give)*", f"{GIVE}; {WAIT}", Outcome.VIOLATED),
        ("make (wait give)*", f"for i in 0 .. N {{ {WAIT}; {GIVE} }}", Outcome.PROVED),
        ("make (wait give)*", f"for i in 0 .. N {{ {WAIT} }}; {GIVE}", Outcome.VIOLATED),
        ("make (wait give)*", f"{WAIT}; if M > 2 {{ {GIVE} }}", Outcome.VIOLATED),
        ("make (wait give?)*", f"{WAIT}; if M > 2 {{ {GIVE} }}", Outcome.PROVED),
        ("make wait+", f"for i in 0 .. 3 {{ {WAIT} }}", Outcome.PROVED),
        ("make wait+", f"for i in 0 .. N {{ {WAIT} }}", Outcome.VIOLATED),
        ("wait*", "warp.sync", Outcome.VIOLATED),
    ],
)
def test_protocols(verdicts, automaton, load, expected):
    assert outcome(verdicts(LIFE % f'"{automaton}"', kernel(load))) is expected


def test_an_order_between_roles_that_nobody_knows_is_unknown(verdicts):
    found = verdicts(LIFE % "make wait give", kernel(WAIT, GIVE))
    assert outcome(found) in (Outcome.UNKNOWN, Outcome.VIOLATED)
    found = verdicts(LIFE % '"make (wait | give)? (wait | give)?"', kernel(WAIT, GIVE))
    assert outcome(found) is Outcome.UNKNOWN and "'load', 'math'" in found[0].finding.message


# --- what plugins say for rules alone ----------------------------------------------------------------------------


def test_attributes_of_a_strangers_statement_are_matched_and_nothing_else_sees_them(offered, tmp_path):
    from dataclasses import dataclass, replace

    from cake_core import types
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.source import Source

    @dataclass(frozen=True, kw_only=True)
    class Tune(types.Operation):
        """`acme.tune 2`."""

        def effects(self, op):
            return (types.Attribute("width", op.operands[0].value), types.Attribute("mode", "fast"))

    tune = Tune(name="acme.tune", operands=(types.Parameter("width", "constant"),), doc="None.")
    registry = replace(offered, operations={**offered.operations, "acme.tune": tune})
    text = kernel(math="acme.tune 2; if leader { acme.tune 4 }", load="acme.tune 2")
    front = frontend(Source("case.cake", text), registry)
    rows = rows_of(facts_of(front.typed, registry, front.arch), front.arch, registry)
    assert [(r["name"], r["word"], r["number"], r["by"]) for r in rows["attribute"]] == [("width", "2", 2, "all"), ("mode", "fast", None, "all"), ("width", "2", 2, "all"), ("mode", "fast", None, "all"), ("width", "4", 4, "leader"), ("mode", "fast", None, "leader")]  # fmt: skip
    assert all(r.site.event.acts == () for r in rows["attribute"])
    path = tmp_path / "rule.yaml"
    path.write_text(
        HEAD.format(level="error", status="stable")
        + "match: {a: {attribute: {name: width}}, b: {attribute: {name: width}}}\nwhere: a.role == b.role\nrequire: a.number == b.number\n"
    )
    found = judge([load_rule(path)], rows)
    assert outcome(found) is Outcome.VIOLATED and {v.bindings["a"]["role"] for v in found} == {"math"}


def test_what_comes_back_to_its_own_agent_is_no_new_way(verdicts):
    """A write is fenced in the next turn; meanwhile an arrival goes to the other role and back."""
    rule = "from: {access: {space: shared, mode: write}}\nto: {meet: {scope: named}}\nmust_pass: {fence: {kind: proxy_async}}\nof: each writer\n"
    store = "store g <- x by 8"
    turn = "frag x: f32[256] vec 2 layout vector; x = 1.0; for i in 0 .. N {{ mbarrier.arrive done[0]; mbarrier.wait full[0] parity 0; {fence} bar.sync 1 threads 128; {store} }}"
    back = "for i in 0 .. N { mbarrier.wait done[0] parity 0; if leader { mbarrier.arrive full[0] } }"
    assert outcome(verdicts(rule, kernel(back, turn.format(fence="fence.proxy.async;", store=store)))) is Outcome.PROVED
    assert outcome(verdicts(rule, kernel(back, turn.format(fence="", store=store)))) is Outcome.VIOLATED
