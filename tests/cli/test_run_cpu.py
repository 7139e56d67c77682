"""`cake run --on cpu`, from a text and from an artifact: what it shows, finds, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.cli.app import app
from cake_core.diagnostics.json import SCHEMA_FILE
from cake_core.trace import chrome

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "kernels" / "elementwise" / "scale_shift.cake"
SHAPE = ("--shape", "B=1,R=3,C=64")


def cake(*args):
    return CliRunner().invoke(app, list(map(str, args)), prog_name="cake")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu") / "out"
    assert cake("build", TEXT, "--arch", "sm80", "-o", folder).exit_code == 0
    return folder


def on_cpu(target, *args):
    return cake("run", target, "--on", "cpu", "--reference", TEXT.with_suffix(".py"), *args)


def edited(built, tmp_path, old: str, new: str) -> Path:
    """The artifact with another text, and a manifest that says so."""
    made = tmp_path / "edited"
    made.mkdir()
    for file in built.iterdir():
        (made / file.name).write_bytes(file.read_bytes())
    ptx = (made / "kernel.ptx").read_text()
    assert old in ptx
    (made / "kernel.ptx").write_text(ptx.replace(old, new, 1))
    manifest = json.loads((made / "manifest.json").read_text())
    del manifest["hashes"]["kernel.ptx"]
    (made / "manifest.json").write_text(json.dumps(manifest))
    return made


def test_a_text_is_built_and_executed():
    result = cake("run", TEXT, "--arch", "sm80", "--on", "cpu", *SHAPE)
    assert result.exit_code == 0, result.output
    assert "its PTX executed on the CPU" in result.output and "B=1 R=3 C=64  Y       ok" in result.output


@pytest.mark.parametrize("schedule", ["round-robin", "random:7", "adversarial"])
def test_an_artifact_needs_neither_its_cubin_nor_its_text(built, tmp_path, schedule):
    made = tmp_path / "bare"
    made.mkdir()
    for name in ("manifest.json", "kernel.ptx"):
        (made / name).write_bytes((built / name).read_bytes())
    result = on_cpu(made, *SHAPE, "--schedule", schedule)
    assert result.exit_code == 0, result.output


def test_a_finding_stands_at_the_line_of_the_text(built, tmp_path):
    result = on_cpu(edited(built, tmp_path, "st.global.v4", "st.global.v2"), *SHAPE, "--json")
    assert result.exit_code != 0  # this form takes two registers: refused by its name
    (found,) = json.loads(result.stdout)["diagnostics"]
    assert found["code"] == "emulate/unsupported" and "st.global.v2" in found["message"]


def test_findings_that_are_not_kept_are_counted(built, tmp_path):
    """Thirty reads of what nobody wrote, each at a line of its own: twenty are told, and how many more there are, in both forms."""
    reads = "".join(f"\n  ld.shared.b32 %lost, [{1024 + 4 * n}];" for n in range(30))
    made = edited(built, tmp_path, "  mov.u32 %r0, %tid.x;", f"  .shared .b8 lost[256];\n  .reg .b32 %lost;\n  mov.u32 %r0, %tid.x;{reads}")
    shown = on_cpu(made, *SHAPE, "--json")
    diagnostics = json.loads(shown.stdout)["diagnostics"]
    assert [d["code"] for d in diagnostics].count("emulate/uninitialised") == 20
    (more,) = [d for d in diagnostics if d["code"] == "emulate/more"]
    assert more["message"].startswith("10 more findings") and more["severity"] == "note" and shown.exit_code == 1
    assert "10 more findings" in on_cpu(made, *SHAPE).output


def test_a_wrong_result_and_an_access_outside(built, tmp_path):
    made = edited(built, tmp_path, "  mov.u32 %r0, %tid.x;", "  mov.u32 %r0, %tid.x;\n  st.global.b32 [64], %r0;")
    result = on_cpu(made, *SHAPE, "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    jsonschema.validate(report, json.loads(SCHEMA_FILE.read_text()))
    codes = [f["code"] for f in report["diagnostics"]]
    assert codes == ["emulate/out-of-bounds"]
    assert not report["runs"][0]["ok"] and "emulate/out-of-bounds" in report["runs"][0]["results"][0]["fault"]
    shown = on_cpu(made, *SHAPE).output
    assert "emulate/out-of-bounds" in shown and "kernel.ptx" in shown and "B = 1, R = 3, C = 64" in shown


def test_text_that_is_no_ptx(built, tmp_path):
    result = on_cpu(edited(built, tmp_path, ".visible .entry", "!!"), *SHAPE)
    assert result.exit_code == 1 and "emulate/unsupported" in result.output and "Traceback" not in result.output


def test_bytes_that_are_no_text(built, tmp_path):
    made = edited(built, tmp_path, ".target", ".tarjet")
    ptx = (made / "kernel.ptx").read_bytes().replace(b".tarjet", b".tar\xffet")
    (made / "kernel.ptx").write_bytes(ptx)
    result = on_cpu(made, *SHAPE)
    assert result.exit_code == 1 and "error[emulate/unsupported]: kernel.ptx can't be read: byte 0xff is no text" in result.output
    assert f"line {ptx[: ptx.index(bytes([255]))].count(bytes([10])) + 1} of kernel.ptx" in result.output


def test_an_instruction_that_nobody_executes(built, tmp_path):
    result = on_cpu(edited(built, tmp_path, "  mov.u32 %r0, %tid.x;", "  acme.twist.b32 %r0;\n  mov.u32 %r0, %tid.x;"), *SHAPE)
    assert result.exit_code == 1 and "'acme.twist.b32' is not executed here" in result.output


def test_a_damaged_artifact(built, tmp_path):
    made = edited(built, tmp_path, "add", "sub")
    (made / "manifest.json").write_bytes((built / "manifest.json").read_bytes())
    result = on_cpu(made, *SHAPE)
    assert result.exit_code == 1 and "runtime/artifact-hash" in result.output


def test_a_trace(built, tmp_path):
    file = tmp_path / "t.json"
    result = on_cpu(built, *SHAPE, "--trace", file)
    assert result.exit_code == 0, result.output
    trace = json.loads(file.read_text())
    jsonschema.validate(trace, json.loads((Path(chrome.__file__).parent / "chrome.schema.json").read_text()))
    named = {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    assert any(n.startswith("warp 0") for n in named)
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert slices and all(e["dur"] > 0 for e in slices)
    assert json.loads(on_cpu(built, *SHAPE, "--json", "--trace", file).output)["runs"] and json.loads(file.read_text()) == trace
    missing = tmp_path / "gone" / "t.json"
    refused = on_cpu(built, *SHAPE, "--trace", missing)
    assert refused.exit_code == 2 and "no folder" in refused.output


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--schedule", "lucky"], "none of round-robin, random:SEED, adversarial"),
        (["--trace", "t.json"], "one --shape"),
        (["--on", "abacus"], "abacus"),
    ],
)
def test_what_is_refused(built, args, says):
    result = on_cpu(built, *args) if args[0] != "--on" else cake("run", built, *args)
    assert result.exit_code == 2 and says in result.output


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (".reg .b32 %many<2000000000>;", "registers are declared"),
        (".shared .align 16 .b8 vast[4000000000];", "bytes of shared memory are declared"),
    ],
)
def test_declarations_beyond_any_device(built, tmp_path, declared, says):
    result = on_cpu(edited(built, tmp_path, "  mov.u32 %r0, %tid.x;", f"  {declared}\n  mov.u32 %r0, %tid.x;"), *SHAPE)
    assert result.exit_code == 1 and "emulate/unsupported" in result.output and says in result.output


def test_a_source_map_that_is_none(built, tmp_path):
    made = edited(built, tmp_path, "  mov.u32 %r0, %tid.x;", "  acme.twist.b32 %r0;\n  mov.u32 %r0, %tid.x;")
    (made / "sourcemap.json").write_text('{"lines": 7}')
    result = on_cpu(made, *SHAPE)
    assert result.exit_code == 1 and "'acme.twist.b32' is not executed here" in result.output
