"""`cake run --on cpu --break LABEL`: what machine code holds at a label of the text, in the form and with the values of the simulator."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cake_core.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
GEMM = ROOT / "kernels" / "gemm"


def cake(*args):
    return CliRunner().invoke(app, list(map(str, args)), prog_name="cake")


def labelled(tmp_path, name: str, old: str, label: str) -> Path:
    """A text of the zoo with a label in front of a statement that stands there once."""
    text = (GEMM / f"{name}.cake").read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / f"{name}.cake"
    path.write_text(text.replace(old, f"@{label} {old}"), encoding="utf-8")
    return path


def stops(path, on: str, label: str, *args) -> list[list[str]]:
    """Lines of each stop."""
    result = cake("run", path, "--on", on, "--reference", GEMM / f"{path.stem}.py", "--break", label, *args)
    assert result.exit_code == 0, result.output
    return [part.split("\n\n")[0].split("\n") for part in result.output.split(f"@{label}: ")[1:]]


def part(stop: list[str], title: str) -> list[str]:
    """The lines of one part of a stop, its title left out."""
    at = next(n for n, line in enumerate(stop) if line.startswith(f"  {title} "))
    end = next((n for n in range(at + 1, len(stop)) if stop[n][2] != " "), len(stop))
    return [line[12:].split() for line in stop[at:end]]


def test_fragments_and_slots_are_those_of_the_simulator(tmp_path):
    """Names, fragments with two slots, and buffers with swizzles, in front of each product of a tile: all of it, in the same words."""
    path = labelled(tmp_path, "gemm_sm80", "mma.sync acc +=", "go")
    args = ("--arch", "sm80", "--shape", "M=128,N=128,K=64")
    machine, simulated = (stops(path, on, "go", *args) for on in ("cpu", "sim"))
    assert machine == simulated and len(machine) == 4
    assert [words[0] for words in part(machine[3], "registers")] == ["acc", "fa[0]", "fa[1]", "fb[0]", "fb[1]"]


def test_tensor_memory_and_barriers(tmp_path):
    path = labelled(tmp_path, "gemm_sm100", "store d[j % 2]", "out")
    args = ("--shape", "M=128,N=256,K=64")
    machine, simulated = (stops(path, on, "out", *args) for on in ("cpu", "sim"))
    assert [s[0] for s in machine] == [s[0] for s in simulated] == ["epi[0] of CTA 0 t_i=0"] * 4
    for mine, other in zip(machine, simulated, strict=True):
        for title in ("names", "registers", "barriers"):
            assert part(mine, title) == part(other, title)
    acc = [next(words for words in part(s[0], "memory") if words[0] == "acc[0]") for s in (machine, simulated)]
    assert acc[0] == acc[1] and "written" not in acc[0]


def test_registers_that_an_engine_has_are_said_to_be_its_own(tmp_path):
    path = labelled(tmp_path, "gemm_sm90", "wgmma.wait 0", "done")
    first, second, *rest = stops(path, "cpu", "done", "--shape", "M=128,N=256,K=64")
    assert len(rest) == 2 and first[0].startswith("math[0]") and second[0].startswith("math[1]")
    (acc,) = part(first, "registers")
    assert "which" in acc and "still" in acc, acc


def test_parts_that_lanes_have_of_a_row_are_put_together(tmp_path):
    name = "attn_fwd_sm90"
    text = (ROOT / "kernels" / "attention" / f"{name}.cake").read_text(encoding="utf-8")
    path = tmp_path / "a.cake"
    at = text.rindex("wgmma o += p @ v[vs]")
    path.write_text(f"{text[:at]}@pv {text[at:]}", encoding="utf-8")
    ran = [
        cake(
            "run",
            path,
            "--on",
            on,
            "--reference",
            ROOT / "kernels" / "attention" / f"{name}.py",
            "--shape",
            "B=1,H=1,HK=1,TQ=64,TK=64",
            "--break",
            "pv",
        )
        for on in ("cpu", "sim")
    ]
    assert all(r.exit_code == 0 for r in ran)
    first = [part(r.output.split("@pv: ")[1].split("\n\n")[0].split("\n"), "registers") for r in ran]
    sums = [[float(x.strip("[],")) for x in next(words for words in rows if words[0] == "l")[2:8]] for rows in first]
    assert sums[0] == pytest.approx(sums[1], rel=1e-3) and max(sums[0]) > 1


def test_a_derived_text_outside_of_roles_and_in_a_hang(tmp_path):
    """What one thread executes, in front of the roles; and a barrier that is short of an arrival for ever, shown where its waiter stands."""
    built = tmp_path / "built"
    assert cake("build", GEMM / "gemm_sm90.cake", "-o", built).exit_code == 0
    text = (built / "derived.cake").read_text(encoding="utf-8").replace("mbarrier.init ab_full", "@init mbarrier.init ab_full", 1)
    path = tmp_path / "d.cake"
    path.write_text(text.replace("wgmma.wait 0", "@done wgmma.wait 0", 1), encoding="utf-8")
    made = tmp_path / "made"
    assert cake("build", path, "-o", made).exit_code == 0
    ptx = (made / "kernel.ptx").read_text()
    (made / "kernel.ptx").write_text(ptx.replace("[%r21], 1;", "[%r21], 2;", 1))
    manifest = json.loads((made / "manifest.json").read_text())
    del manifest["hashes"]["kernel.ptx"]
    (made / "manifest.json").write_text(json.dumps(manifest))
    args = ("--reference", GEMM / "gemm_sm90.py", "--shape", "M=128,N=256,K=64", "--break", "init", "--break", "done")
    result = cake("run", made, "--on", "cpu", *args)
    assert result.exit_code == 1 and "emulate/deadlock" in result.output
    assert result.output.count("@init: load[0] of CTA") == 2 and "@done" not in result.output
    right = cake("run", path, "--on", "cpu", *args)
    assert right.output.count("@init: ") == 2 and right.output.count("@done: math[") == 4


@pytest.mark.parametrize(
    ("on", "label", "says"),
    [
        ("cpu", "dine", "no label 'dine'; its labels are done; did you mean 'done'?"),
        ("sim", "@done", "did you mean 'done'?"),
        ("sim", "42", "its labels are done"),
    ],
)
def test_labels_that_are_not_there(tmp_path, on, label, says):
    result = cake("run", labelled(tmp_path, "gemm_sm90", "wgmma.wait 0", "done"), "--on", on, "--break", label)
    assert result.exit_code == 2 and says in " ".join(result.output.split()), result.output


def test_an_artifact_has_its_labels_with_it(tmp_path):
    path = labelled(tmp_path, "gemm_sm80", "mma.sync acc +=", "go")
    assert cake("build", path, "--arch", "sm80", "-o", tmp_path / "out").exit_code == 0
    rows = json.loads((tmp_path / "out" / "sourcemap.json").read_text())["labels"]
    text = (tmp_path / "out" / "kernel.ptx").read_text().splitlines()
    assert {(r["label"], r["role"]) for r in rows} == {("go", "main")}
    assert all("mma.sync" in text[r["line"] - 1] for r in rows)  # the comment that names the statement
    run = ("run", tmp_path / "out", "--on", "cpu", "--reference", GEMM / "gemm_sm80.py", "--shape", "M=128,N=128,K=64", "--break", "go")
    assert cake(*run).output.count("@go: main[0] of CTA 0") == 4
    (tmp_path / "out" / "sourcemap.json").write_text('{"lines": [], "labels": [7, {"label": "go"}]}')
    result = cake(*run)
    assert result.exit_code == 2 and "it has no labels" in result.output


@pytest.mark.parametrize(("args", "says"), [(("--on", "gpu"), "goes with --on cpu or --on sim"), (("--on", "cpu", "--json"), "prints text")])
def test_what_a_look_inside_does_not_go_with(args, says):
    result = cake("run", GEMM / "gemm_sm90.cake", *args, "--break", "x")
    assert result.exit_code == 2 and says in result.output
