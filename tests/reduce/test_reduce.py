"""Texts made small: what is taken out, what is kept, and that the result is the same in every run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.reduce import Pair, minimise
from cake_core.reduce.edits import fixed, forgotten, shortened, smaller, unwrapped

RULES = Path(__file__).parents[2] / "rules" / "core" / "cake_rules_core" / "rules"

TEXT = """cake 1 derived
kernel k(N: i32, X: in f32[N, 4])
  target sm90
{
  let a = 1, b = 2
  if a > 0 {
    one a
  } else {
    two b
  }
  for i in 3 .. N step 2 {
    three i
    if i > 0 {
      four 128
    }
  }
}
"""


def cake(*args: str):
    return CliRunner().invoke(app, args, prog_name="cake")


def texts(edits) -> list[str]:
    return [p.bad for p in edits(Pair.of(TEXT))]


# --- pairs and edits


def test_a_pair_is_both_of_its_texts():
    good = TEXT.replace("    two b\n", "    two b\n    five\n").replace("three i", "three j")
    pair = Pair.of(TEXT, good)
    assert (pair.bad, pair.good) == (TEXT, good)
    assert [(line.text.strip(), line.side) for line in pair.lines if line.side != "both"] == [
        ("five", "good"),
        ("three i", "bad"),
        ("three j", "good"),
    ]


def test_what_can_be_taken_out_is_a_statement_a_block_or_an_arm():
    pair = Pair.of(TEXT)
    shown = {"\n".join(pair.lines[i].text.strip() for i in sorted(unit)) for depth, unit in pair.units() if depth > 0}
    assert "three i" in shown and "if i > 0 {\nfour 128\n}" in shown
    assert "if a > 0 {\none a\n} else {\ntwo b\n}" in shown and "} else {\ntwo b" in shown
    assert all(s.count("{") == s.count("}") for s in shown), "an arm goes with the brace that closes the one before it"


def test_the_repair_is_never_taken_out_by_itself():
    pair = Pair.of(TEXT, TEXT.replace("four 128", "four 64"))
    repair = {i for i, line in enumerate(pair.lines) if line.side != "both"}
    units = [unit for _, unit in pair.units()]
    assert len(repair) == 2 and not any(unit <= repair for unit in units) and any(unit > repair for unit in units)


def test_blocks_lose_what_stands_around_them():
    found = texts(unwrapped)
    assert TEXT.replace("  if a > 0 {\n    one a\n  } else {\n    two b\n  }\n", "    one a\n") in found
    assert TEXT.replace("  if a > 0 {\n    one a\n  } else {\n    two b\n  }\n", "    two b\n") in found
    assert any("let i = 3\n    three i" in t for t in found), "a loop's index is its first value"


def test_lists_words_numbers_and_parameters_become_less():
    short = texts(shortened)
    assert any("  let a = 1\n" in t for t in short) and any("  let b = 2\n" in t for t in short)
    assert any("kernel k(N: i32)" in t for t in short) and any("kernel k(X: in f32[N, 4])" in t for t in short)
    assert any("for i in 3 .. N {" in t for t in short), "words at the end of a line may be left out"
    assert any("four 64" in t for t in texts(smaller)) and all(t.startswith("cake 1 ") for t in texts(smaller))
    assert any("kernel k(X: in f32[64, 4])" in t and ".. 64 step" in t for t in texts(fixed))


def test_a_name_goes_with_all_that_mentions_it():
    found = texts(forgotten)
    assert any("three" not in t and "let a" in t and "for" not in t for t in found)
    assert not any("N: i32" in t and "for" not in t and "X" not in t for t in found)


# --- minimising


def test_only_what_the_oracle_asks_for_is_left():
    found = minimise(Pair.of(TEXT), lambda bad, good: "three i" in bad and bad.count("{") == bad.count("}"))
    assert found.complete and found.pair.bad.replace(" ", "") == "{\nthreei\n}\n"


def test_both_texts_are_made_smaller_by_the_same_steps():
    good = TEXT.replace("four 128", "four 64")
    found = minimise(Pair.of(TEXT, good), lambda bad, good: "four 128" in bad and "four 64" in good and bad.count("{") == bad.count("}"))
    assert found.pair.bad.replace("128", "64") == found.pair.good and "three" not in found.pair.bad


def test_tries_bound_the_work_and_what_was_found_is_kept():
    asked = []
    found = minimise(Pair.of(TEXT), lambda bad, good: asked.append(bad) or "three i" in bad, tries=5)
    assert len(asked) == found.tries == 5 and not found.complete
    assert "three i" in found.pair.bad and len(found.pair.lines) < len(TEXT.splitlines())
    assert len(set(asked)) == len(asked), "no text is asked of twice"


def test_what_the_oracle_does_not_say_of_the_whole_text_is_not_reduced():
    found = minimise(Pair.of(TEXT), lambda bad, good: False)
    assert (found.pair.bad, found.tries, found.complete) == (TEXT, 1, False)


# --- by real oracles


def test_a_finding_stays_and_the_repaired_text_keeps_the_rule(tmp_path):
    files = [str(RULES / "missing-proxy-fence" / f"{name}.cake") for name in ("bad_no_fence", "good_all_writers")]
    out = [str(tmp_path / name) for name in ("bad.cake", "good.cake")]
    how = ["--fixed", files[1], "--keep", "core/missing-proxy-fence"]
    done = cake("reduce", files[0], *how, "-o", out[0], "--fixed-output", out[1])
    assert done.exit_code == 0, done.output
    small = [Path(o).read_text() for o in out]
    assert len(small[0].splitlines()) < 0.8 * len(Path(files[0]).read_text().splitlines())
    assert set(small[1].splitlines()) - set(small[0].splitlines()) == {"    fence.proxy.async"}
    told = [[d["code"] for d in json.loads(cake("check", o, "--json").output)["diagnostics"]] for o in out]
    assert "core/missing-proxy-fence" in told[0] and "core/missing-proxy-fence" not in told[1]
    again = json.loads(cake("reduce", files[0], *how, "--json").output)
    assert (again["text"], again["fixed"], again["kept"]) == (*small, True)


def test_a_fault_that_the_event_machine_shows_stays(tmp_path):
    file = RULES / "arrival-count" / "bad_nobody.cake"
    done = cake("reduce", str(file), "--keep", "deadlock", "--tries", "120", "--json")
    found = json.loads(done.output)
    assert found["kept"] and found["lines"]["after"] < found["lines"]["before"] // 2 and "mbarrier.wait" in found["text"]
    other = cake("reduce", str(file), "--keep", "tensor memory")
    assert other.exit_code == 1 and "'tensor memory' is not what" in other.output


def test_a_command_is_an_oracle(tmp_path):
    file = tmp_path / "k.cake"
    file.write_text(TEXT)
    script = f"{sys.executable} -c \"import sys; sys.exit(7 if 'three i' in open(sys.argv[1]).read() else 0)\""
    found = json.loads(cake("reduce", str(file), "--keep", f"exit 7: {script}", "--tries", "40", "--as-written", "--json").output)
    assert found["kept"] and "three i" in found["text"] and "one a" not in found["text"]


@pytest.mark.parametrize(
    "args, said",
    [
        (["--keep", "core/arival-count"], "did you mean 'core/arrival-count'?"),
        (["--keep", "dedlock"], "did you mean 'deadlock'?"),
        (["--keep", "deadlock", "--fixed", "x.cake"], "go together"),
    ],
)
def test_what_can_not_be_asked_for_is_usage(args, said):
    done = cake("reduce", str(RULES / "threads" / "bad_pad.cake"), *args)
    assert done.exit_code == 2 and said in done.output


def test_which_target_is_meant_has_to_be_said(tmp_path):
    file = tmp_path / "k.cake"
    file.write_text((RULES / "threads" / "bad_pad.cake").read_text().replace("target sm90", "target sm80, sm90"))
    done = cake("reduce", str(file), "--keep", "core/threads")
    assert done.exit_code == 1 and "choose with --arch: 'sm80', 'sm90'" in done.output
    assert (
        "target sm90\n" in json.loads(cake("reduce", str(file), "--keep", "core/threads", "--arch", "sm90", "--tries", "1", "--json").output)["text"]
    )


def test_every_process_says_the_same_whatever_its_hash_seed(tmp_path):
    """What is made smaller, drafted and said of rules, byte for byte."""
    files = [str(RULES / "missing-proxy-fence" / f"{name}.cake") for name in ("bad_no_fence", "good_all_writers")]
    (tmp_path / "f.json").write_text(json.dumps({"code": "core/missing-proxy-fence", "span": {"file": files[0], "line": 1}}))
    found = set()
    for seed in ("0", "1"):
        env = os.environ | {"PYTHONHASHSEED": seed, "CAKE_CACHE": ""}
        pack = tmp_path / seed / "cake_rules_acme"
        pack.parent.mkdir()
        new = ["rules", "new", "acme/late", "--from", str(tmp_path / "f.json"), "--fixed", files[1], "--pack", str(pack), "--tries", "60"]
        subprocess.run([sys.executable, "-m", "cake_core", *new], env=env, check=True, capture_output=True)
        said = subprocess.run([sys.executable, "-m", "cake_core", "rules", "lint", "core", "--json"], env=env, check=True, capture_output=True).stdout
        found.add((said, *(p.read_bytes() for p in sorted(pack.rglob("*.*")))))
    assert len(found) == 1
