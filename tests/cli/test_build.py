"""`cake build` and `cake check` on whole texts: artifacts, formats, refusals, determinism."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cake_core.artifact import Manifest, sha256
from cake_core.assemble import wheel_ptxas
from cake_core.cli.app import app
from cake_core.cli.build import parse_setting
from cake_core.diagnostics.json import SCHEMA_FILE

ROOT = Path(__file__).resolve().parents[2]
GEMM = ROOT / "kernels" / "gemm" / "gemm_sm90.cake"
RMSNORM = ROOT / "kernels" / "rmsnorm" / "rmsnorm.cake"
KERNELS = [GEMM, RMSNORM]
ARCH = ["--arch", "sm90"]
FILES = {"kernel.ptx", "manifest.json", "sourcemap.json", "derived.cake"}

real = pytest.mark.skipif(wheel_ptxas() is None, reason="the assembler's wheel is not installed")


def cake(*args, **more):
    return CliRunner().invoke(app, list(map(str, args)), prog_name="cake", **more)


def fake_ptxas(folder: Path, body: str) -> Path:
    path = folder / "fake-ptxas"
    path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'Ptx optimizing assembler V99.1.2'; exit 0; }}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def ptxas(tmp_path):
    """An assembler that assembles nothing and is quick."""
    return fake_ptxas(tmp_path, """echo "ptxas info : Compiling entry function 'any' for 't'"; echo binary > kernel.cubin""")


# --- artifacts


@real
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda p: p.stem)
def test_a_kernel_becomes_a_whole_artifact(kernel, tmp_path):
    out = tmp_path / "made" / "here"
    result = cake("build", kernel, *ARCH, "-o", out)
    assert result.exit_code == 0, result.output
    assert {p.name for p in out.iterdir()} == FILES | {"kernel.cubin"}
    manifest = Manifest.from_json((out / "manifest.json").read_text())
    assert manifest.hashes[kernel.name] == sha256(kernel.read_bytes())
    for name in FILES - {"manifest.json"} | {"kernel.cubin"}:
        assert manifest.hashes[name] == sha256((out / name).read_bytes())
    assert (out / "kernel.cubin").read_bytes().startswith(b"\x7fELF")
    assert manifest.assembled["spill_store_bytes"] == manifest.assembled["spill_load_bytes"] == 0
    assert manifest.allowed_unproved == manifest.violated == ()
    assert set(manifest.unproved) <= {"fences before engines write what threads have read"}
    lines = json.loads((out / "sourcemap.json").read_text())["lines"]
    assert len(lines) == len((out / "kernel.ptx").read_text().splitlines())
    last = len(kernel.read_text().splitlines())
    assert all(x is None or x[0] == kernel.name and 1 <= x[1] <= last for x in lines)
    assert sum(x is not None for x in lines) > 0.9 * len(lines)


@real
def test_the_report_says_what_was_built(tmp_path):
    out = cake("build", GEMM, "-o", tmp_path / "a").stdout
    assert re.search(r"^  load +0 +1 +1 +3 +40$", out, re.M)
    assert re.search(r"^  math +4-11 +2 +4 +232$", out, re.M)
    assert re.search(r"^  a +0 +65536 +bf16\[4\]\[128, 64\] +128$", out, re.M)
    assert re.search(r"\d+ bytes planned, 1024 to align the base, \d+ of 232448 free", out)
    assert re.search(r"^  ab +4 +a, b +load +math +ab_full\[4\] of 1, ab_empty\[4\] of 4$", out, re.M)
    assert re.search(r"\d+ registers a thread at entry, \d+ named barriers, no spills", out)
    assert re.search(r"^Proof\n  sizes     all with 1 <= M, .*K % 8 == 0\n  proved    deadlock, data races, .*index overflow\n\n", out, re.M)
    assert f"Wrote {tmp_path / 'a'}" in out and "kernel.cubin" in out
    assert "\x1b" not in out


def test_the_default_folder_is_out_kernel_arch(tmp_path, monkeypatch, ptxas):
    monkeypatch.chdir(tmp_path)
    assert cake("build", GEMM, "--ptxas", ptxas).exit_code == 0
    assert Path("out/gemm_sm90.sm90/manifest.json").is_file()


def test_constants_are_recorded_and_can_be_set(tmp_path, ptxas):
    for settings, expected in ([], 4), (["--set", "ST=3"], 3):
        assert cake("build", GEMM, *settings, "--ptxas", ptxas, "-o", tmp_path / "a").exit_code == 0
        manifest = Manifest.from_json((tmp_path / "a" / "manifest.json").read_text())
        assert manifest.constants["ST"] == expected and manifest.pipelines[0]["slots"] == expected
    assert cake("build", GEMM, "--set", "STT=3", "--ptxas", ptxas, "-o", tmp_path / "a").exit_code == 1


@pytest.mark.parametrize("text, value", [("A=3", 3), ("A = -1", -1), ("A=0.5", 0.5), ("A=true", True), ("A=false", False)])
def test_settings(text, value):
    assert parse_setting(text) == ("A", value) and type(parse_setting(text)[1]) is type(value)


def test_an_artifact_is_replaced_whole_and_something_else_is_not(tmp_path, ptxas):
    out = tmp_path / "a"
    assert cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", out).exit_code == 0
    (out / "stale").write_text("of the last build")
    assert cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", out).exit_code == 0
    assert not (out / "stale").exists()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years")
    result = cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", precious)
    assert result.exit_code == 2 and "is no artifact; it is left alone" in result.stderr
    assert [p.name for p in precious.iterdir()] == ["thesis.txt"]
    for failing in (["--set", "NO=1"], ["--arch", "sm1"]):  # the later --arch counts
        before = (out / "manifest.json").read_bytes()
        assert cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", out, *failing).exit_code != 0
        assert (out / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("place", [".", "..", "sub/.."])
def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch, ptxas, place):
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    monkeypatch.chdir(here)
    result = cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", place)
    assert result.exit_code == 2 and "holds the current folder" in result.stderr and [x.name for x in here.iterdir()] == ["sub"]


PLACES = [lambda d: d / "file" / "a", lambda d: d / "file", lambda d: d / ("x" * 300), lambda d: "x" * 5000, lambda d: d / "loop"]


@pytest.mark.parametrize("place", PLACES, ids=["under a file", "a file", "long name", "long path", "link to itself"])
def test_a_place_that_can_not_be_written(tmp_path, ptxas, place):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    result = cake("build", RMSNORM, *ARCH, "--ptxas", ptxas, "-o", place(tmp_path))
    assert result.exit_code == 2 and "internal error" not in result.output


# --- parts of it


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda p: p.stem)
def test_emit_writes_one_thing(kernel, tmp_path, ptxas):
    assert cake("build", kernel, *ARCH, "--ptxas", ptxas, "-o", tmp_path / "a").exit_code == 0
    for what, name in (("ptx", "kernel.ptx"), ("derived", "derived.cake")):
        result = cake("build", kernel, *ARCH, "--emit", what)
        assert result.exit_code == 0 and result.stdout_bytes == (tmp_path / "a" / name).read_bytes()
        assert cake("build", kernel, *ARCH, "--emit", what, "-o", tmp_path / what).exit_code == 0
        assert (tmp_path / what).read_bytes() == result.stdout_bytes
    result = cake("build", kernel, *ARCH, "--emit", "cubin", "--ptxas", ptxas)
    assert result.stdout_bytes == b"binary\n"


def test_ptx_and_the_derived_form_need_no_assembler(tmp_path):
    for what in ("ptx", "derived"):
        assert cake("build", RMSNORM, *ARCH, "--emit", what, env={"CAKE_PTXAS": "/no/such"}).exit_code == 0


@pytest.mark.parametrize("args", [["--emit", "cubin"], ["-o", "unused"]])
def test_an_assembler_that_was_asked_for_must_be_there(args):
    result = cake("build", RMSNORM, *ARCH, *args, env={"CAKE_PTXAS": "/no/such"})
    assert result.exit_code == 3 and "error[assemble/no-assembler]" in result.stderr


def test_without_an_assembler_there_is_a_warning_and_no_cubin(tmp_path, monkeypatch):
    monkeypatch.setattr("cake_core.assemble.wheel_ptxas", lambda: None)
    monkeypatch.delenv("CAKE_PTXAS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = cake("build", RMSNORM, *ARCH, "-o", tmp_path / "a")
    assert result.exit_code == 0 and "warning[assemble/no-assembler]" in result.stderr
    assert {p.name for p in (tmp_path / "a").iterdir()} == FILES
    assert Manifest.from_json((tmp_path / "a" / "manifest.json").read_text()).assembled is None


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda p: p.stem)
def test_a_derived_text_builds_to_the_same_ptx(kernel, tmp_path):
    derived = tmp_path / "again.cake"
    assert cake("build", kernel, *ARCH, "--emit", "derived", "-o", derived).exit_code == 0
    assert cake("build", derived, "--emit", "ptx").stdout == cake("build", kernel, *ARCH, "--emit", "ptx").stdout
    assert cake("build", derived, "--emit", "derived").stdout == derived.read_text()
    assert cake("fmt", "--check", derived).exit_code == 0


def test_a_text_from_stdin(tmp_path):
    result = cake("build", "-", *ARCH, "--emit", "ptx", input=RMSNORM.read_text())
    assert result.exit_code == 0 and result.stdout == cake("build", RMSNORM, *ARCH, "--emit", "ptx").stdout


# --- the assembler's findings


def test_what_the_assembler_says_stands_at_the_statement_and_names_the_role(tmp_path):
    lines = json.loads(_file(tmp_path, "sourcemap.json"))["lines"]
    text = GEMM.read_text().splitlines()
    wanted = next(i for i, t in enumerate(text, 1) if "ab_wait" in t or t.strip().startswith("wait ab as s"))
    number = next(i for i, x in enumerate(lines, 1) if x and x[1] == wanted)
    words = f"ptxas info : (C7515) Potential Performance Loss: instructions are serialized due to a wait in the function 'gemm_sm90' in line {number}"
    bad = fake_ptxas(tmp_path, f'echo "{words}"; echo x > kernel.cubin')
    result = cake("build", GEMM, "--ptxas", bad, "-o", tmp_path / "none", "--json")
    assert result.exit_code == 1 and not (tmp_path / "none").exists()
    (d,) = json.loads(result.stdout)["diagnostics"]
    assert (d["code"], d["role"], d["span"]["line"], d["span"]["file"]) == ("assemble/not-as-written", "math", wanted, str(GEMM))


def _file(folder: Path, name: str) -> str:
    cake("build", GEMM, "--ptxas", fake_ptxas(folder, "echo x > kernel.cubin"), "-o", folder / "first")
    return (folder / "first" / name).read_text()


def test_a_spill_is_a_warning_and_the_artifact_is_written(tmp_path):
    body = """echo "ptxas info : Function properties for k"; echo "    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads"; echo x > kernel.cubin"""
    result = cake("build", RMSNORM, *ARCH, "--ptxas", fake_ptxas(tmp_path, body), "-o", tmp_path / "a")
    assert result.exit_code == 0 and "warning[assemble/spill]" in result.stderr and (tmp_path / "a").is_dir()


# --- choosing


TWO = "cake 1\nkernel a(M: i32)\n  target sm90\n{\n}\nkernel b(M: i32)\n  target sm90, other\n{\n}\n"


@pytest.mark.parametrize(
    "args, code",
    [
        ([], "type/several-kernels"),
        (["--kernel", "c"], "type/no-such-kernel"),
        (["--kernel", "b"], "type/several-targets"),
        (["--kernel", "b", "--arch", "other"], "plugin/unknown-arch"),
        (["--kernel", "b", "--arch", "sm91"], "type/wrong-target"),
        (["--kernel", "a", "--arch", "sm90"], "type/no-role"),
        (["--kernel", "a"], "type/no-role"),
    ],
)
def test_kernel_and_target_are_chosen_exactly(args, code):
    result = cake("build", "-", *args, "--format", "concise", input=TWO)
    assert f"error[{code}]" in result.stderr
    assert result.exit_code == (3 if code.startswith("plugin/") else 1)


@pytest.mark.parametrize("text, code", [("cake 1\n", "syntax/unexpected-token"), ("", "syntax/version"), ("cake 1\nkernel a(M: i32)\n{\n}\n", "type/no-target")])
def test_a_text_that_leaves_nothing_to_choose(text, code):
    result = cake("build", "-", input=text)
    assert result.exit_code == 1 and f"error[{code}]" in result.stderr


def test_a_plugin_that_is_not_needed_is_a_warning(monkeypatch):
    from dataclasses import replace

    from cake_core.cli import host
    from cake_core.plugins.types import Origin, PluginRecord, Status

    whole = host.registry()
    bad = PluginRecord(Origin("acme", "acme-cake", "1"), "acme.plugin", Status.BROKEN, cause="ImportError: no module")
    for room in ("build", "check"):
        monkeypatch.setattr(f"cake_core.cli.{room}.registry", lambda: replace(whole, plugins=(*whole.plugins, bad)))
    for command in (["build", RMSNORM, *ARCH, "--emit", "ptx"], ["check", GEMM]):
        result = cake(*command)
        assert result.exit_code == 0 and "warning[plugin/not-loaded]: plugin 'acme' (acme-cake 1) is broken" in result.output


def test_a_plugin_that_is_needed_and_left_out_is_an_engine_error():
    result = cake("--no-plugin", "sm90", "build", GEMM)
    assert result.exit_code == 3 and "error[plugin/blocked]" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_build_leaves_nothing(tmp_path):
    started = tmp_path / "started"
    slow = fake_ptxas(tmp_path, f"touch {started}; exec sleep 30")
    command = [sys.executable, "-m", "cake_core", "build", str(GEMM), "--ptxas", str(slow), "-o", str(tmp_path / "a")]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests that run in the background have it ignored, and children with them  # noqa: E731
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, preexec_fn=heard) as p:
        deadline = time.monotonic() + 20
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        p.send_signal(signal.SIGINT)
        assert p.stderr.read().strip() == b"cake: interrupted" and p.wait() == 130
    assert sorted(x.name for x in tmp_path.iterdir()) == ["fake-ptxas", "started"]


# --- formats


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda p: p.stem)
def test_the_json_of_a_build_is_as_its_schema_says(kernel, tmp_path, ptxas):
    result = cake("build", kernel, *ARCH, "--ptxas", ptxas, "-o", tmp_path / "a", "--json")
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    (build,) = data["builds"]
    assert build["folder"] == (tmp_path / "a").as_posix() and {f["name"] for f in build["files"]} == FILES | {"kernel.cubin"}
    assert build["manifest"] == json.loads((tmp_path / "a" / "manifest.json").read_text())


@pytest.mark.parametrize("format", ["text", "concise", "json", "sarif", "github"])
def test_findings_in_every_format(format):
    result = cake("check", "-", "--format", format, input="cake 1\nkernel a(M: i32)\n  target sm90\n{\n  let x = y\n}\n")
    assert result.exit_code == 1 and "type/unknown-name" in result.stdout and result.stderr == ""
    if format in ("json", "sarif"):
        json.loads(result.stdout)


def test_check_looks_at_every_text_and_target(tmp_path):
    result = cake("check", *KERNELS)
    assert result.exit_code == 0 and result.stdout.endswith("2 texts clean\n")
    assert cake("check", *KERNELS, *ARCH).stdout.endswith("2 texts clean\n")
    broken = tmp_path / "broken.cake"
    broken.write_text(TWO)
    result = cake("check", GEMM, broken, "--json")
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    assert [f["state"] for f in data["files"]] == ["clean", "errors"]
    assert {(d["code"], d["severity"]) for d in data["diagnostics"]} == {("type/no-role", "error"), ("plugin/unknown-arch", "warning")}
    assert result.exit_code == 1
    assert cake("check", "-", input="cake 1\nkernel b(M: i32)\n  target other\n{\n}\n").exit_code == 3


# --- determinism and mangled texts


@real
def test_the_same_text_gives_the_same_bytes(tmp_path):
    """Across processes, hash seeds, folders and time zones."""
    seen = []
    for i, seed in enumerate(("0", "1", "4242")):
        folder = tmp_path / f"run{i}"
        folder.mkdir()
        (folder / GEMM.name).write_bytes(GEMM.read_bytes())
        env = os.environ | {"PYTHONHASHSEED": seed, "TZ": f"UTC{i}"}
        command = [sys.executable, "-m", "cake_core", "build", GEMM.name, "-o", "out"]
        subprocess.run(command, cwd=folder, env=env | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True, capture_output=True)
        seen.append({p.name: p.read_bytes() for p in (folder / "out").iterdir()})
    assert seen[0] == seen[1] == seen[2]
    assert not any(str(tmp_path).encode() in data for data in seen[0].values())


def mangled(text: str, rng: random.Random) -> str:
    """One to three edits of the kinds that a person or a program makes by mistake."""
    for _ in range(rng.randint(1, 3)):
        if not text:
            break
        tokens = re.findall(r"\s+|\w+|[^\w\s]", text)
        i = rng.randrange(len(tokens))
        lines = text.splitlines(keepends=True)
        match rng.randrange(8):
            case 0:
                del tokens[i]
                text = "".join(tokens)
            case 1:
                tokens[i] = rng.choice(["{", "}", "(", ")", "[", "]", "0", "-1", "99999999999", "x", "<-", "+:", "@", "math", "\x00", "\u6f22"])
                text = "".join(tokens)
            case 2:
                j = rng.randrange(len(tokens))
                tokens[i], tokens[j] = tokens[j], tokens[i]
                text = "".join(tokens)
            case 3:
                del lines[rng.randrange(len(lines))]
                text = "".join(lines)
            case 4:
                lines.insert(rng.randrange(len(lines)), rng.choice(lines))
                text = "".join(lines)
            case 5:
                text = text[: rng.randrange(len(text))]
            case 6:
                j = rng.randrange(len(lines))
                k = rng.randrange(len(lines))
                lines[j], lines[k] = lines[k], lines[j]
                text = "".join(lines)
            case _:
                j = rng.randrange(len(text))
                text = text[:j] + chr(rng.randrange(1, 0x3000)) + text[j:]
    return text


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {"schedule": GEMM.read_text(), "derived": cake("build", GEMM, "--emit", "derived").stdout}


@pytest.mark.parametrize("form, seed", [*(("schedule", i) for i in range(60)), *(("derived", i) for i in range(30))])
def test_mangled_texts_end_in_findings(texts, form, seed):
    text = mangled(texts[form], random.Random(seed))
    result = cake("check", "-", "--format", "json", input=text)
    assert "internal error" not in result.stderr, result.stderr
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text()))
    # A few edits keep the text right (a comment, a blank, a constant), or name a target that nobody offers.
    codes = {d["code"] for d in data["diagnostics"] if d["severity"] == "error"}
    assert result.exit_code == (3 if "plugin/unknown-arch" in codes else 1 if codes else 0)
