"""Artifacts: whole ones load and keep what they state; damaged ones end in a runtime/artifact-* diagnostic."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import cake_core as cake
from cake_core.artifact import Manifest
from cake_core.runtime import ArtifactError, load


def refused(folder):
    with pytest.raises(ArtifactError) as raised:
        load(folder)
    d = raised.value.diagnostic
    assert d.message[0] in "'abcdefghijklmnopqrstuvwxyz" and not d.message.endswith(".")
    assert raised.value.diagnostics == (d,) and isinstance(raised.value, (cake.CakeError, ValueError))
    return d


def edit(folder, **changes):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | changes))
    return folder


@pytest.mark.parametrize("which", ["MATMUL", "SCALE"])
def test_a_manifest_survives_the_round_trip(fakes, which):
    manifest = getattr(fakes, which)
    again = Manifest.from_json(manifest.to_json())
    assert json.loads(again.to_json()) == json.loads(manifest.to_json())
    assert again.to_json() == manifest.to_json()


def test_a_loaded_kernel_says_what_it_is(artifact, fakes):
    k = cake.load(artifact(fakes.MATMUL))
    assert k.signature == "matmul(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])"
    assert k.unproved == ("races",) and "unproved: races" in repr(k)


def test_what_the_verifier_refused_is_loaded_only_on_request(artifact, fakes):
    folder = artifact(fakes.SCALE, violated=("core/slot-race", "core/deadlock"))
    d = refused(folder)
    assert d.code == "runtime/violated" and "core/slot-race, core/deadlock" in d.message
    k = load(folder, violated=True)
    assert k.manifest.violated == ("core/slot-race", "core/deadlock") and "violated: core/slot-race" in repr(k)
    assert not load(artifact(fakes.SCALE), violated=True).manifest.violated


def test_what_a_build_was_allowed_to_leave_unproved_is_said_in_one_line(artifact, fakes, capsys):
    k = load(artifact(fakes.SCALE, unproved=("deadlock", "x"), allowed_unproved=("deadlock",)))
    assert k.allowed_unproved == ("deadlock",)
    assert capsys.readouterr() == ("", "cake: 'scale' was built with these left unproved: deadlock\n")
    assert load(artifact(fakes.SCALE, unproved=("x",))).allowed_unproved == () and capsys.readouterr() == ("", "")


def test_a_manifest_of_before_there_were_the_marks_has_none(artifact, fakes):
    folder = artifact(fakes.SCALE)
    path = folder / "manifest.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k not in ("violated", "allowed_unproved")}))
    assert load(folder).manifest.violated == load(folder).allowed_unproved == ()


@pytest.mark.parametrize("name, code", [("manifest.json", "artifact-no-manifest"), ("kernel.cubin", "artifact-no-cubin")])
def test_a_missing_file(artifact, fakes, name, code):
    folder = artifact(fakes.SCALE)
    (folder / name).unlink()
    assert refused(folder).code == f"runtime/{code}"


@pytest.mark.parametrize("data, code", [(None, "artifact-no-ptx"), (b".version 8.6", "artifact-hash"), (b".version\0", "artifact-ptx")])
def test_the_text_of_a_portable_kernel(artifact, fakes, data, code):
    """It is read and verified like the cubin, and only where it may be needed."""
    folder = artifact(fakes.SCALE, portable=True)
    assert load(folder).artifact.ptx == (folder / "kernel.ptx").read_bytes()
    if data is None:
        (folder / "kernel.ptx").unlink()
    else:
        (folder / "kernel.ptx").write_bytes(data)
        if code == "artifact-ptx":
            edit(folder, hashes={})
    assert refused(folder).code == f"runtime/{code}"
    assert load(edit(folder, portable=False)).artifact.ptx is None


@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000, "loop", "loop/a"], ids=lambda n: n[:6])
def test_a_name_that_no_folder_can_have(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    assert refused(tmp_path / name).code == "runtime/artifact-missing"


def test_a_missing_folder(tmp_path):
    assert refused(tmp_path / "nothing").code == "runtime/artifact-missing"


def test_a_folder_in_place_of_a_file(artifact, fakes):
    folder = artifact(fakes.SCALE)
    (folder / "kernel.cubin").unlink()
    (folder / "kernel.cubin").mkdir()
    assert refused(folder).code == "runtime/artifact-unreadable"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"schema": 99}', "{}", '{"schema": 1}', "[" * 100_000, "\udcff"])
def test_a_manifest_that_is_none(artifact, fakes, text):
    folder = artifact(fakes.SCALE)
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refused(folder).code == "runtime/artifact-manifest"


SCALE_PARAMS = lambda fakes: [asdict(p) for p in fakes.SCALE.params]  # noqa: E731


@pytest.mark.parametrize(
    "changes",
    [
        {"launch": None},
        {"launch": {"threads": 0, "cluster": 1, "shared_bytes": 0, "items": 1, "persistent": False}},
        {"launch": {"threads": 32, "cluster": 1, "shared_bytes": -1, "items": 1, "persistent": False}},
        {"launch": {"threads": 32, "cluster": 1, "shared_bytes": 0, "items": "Z", "persistent": False}},
        {"launch": {"threads": 32, "cluster": 1, "shared_bytes": 0, "items": ["system", "R"], "persistent": False}},
        {"requires": [{"formula": ["<=", "Z", 1], "text": "Z <= 1"}]},
        {"requires": [{"text": "no formula"}]},
        {"entry_params": [{"kind": "pointer", "ref": "Z", "type": ""}]},
        {"entry_params": [{"kind": "map", "ref": 0, "type": ""}]},
        {"entry_params": [{"kind": "texture", "ref": "X", "type": ""}]},
        {"tensor_maps": [{"param": "m", "tensor": "X", "elem": "f32", "box": [1], "swizzle": 0}]},
        {"tensor_maps": [{"param": "m", "tensor": "X", "elem": "f32", "box": [1, 1], "swizzle": 48}]},
        {"tensor_maps": [{"param": "m", "tensor": "Z", "elem": "f32", "box": [1, 1], "swizzle": 0}]},
        {"compute_capability": [9]},
        {"compute_capability": "9.0"},
        {"entry": ""},
        {"params": 3},
        {"hashes": []},
        {"violated": [7]},
        {"nonsense": 1},
    ],
    ids=str,
)
def test_a_manifest_that_contradicts_itself(artifact, fakes, changes):
    assert refused(edit(artifact(fakes.SCALE), **changes)).code == "runtime/artifact-manifest"


@pytest.mark.parametrize("change", [{"kind": "x"}, {"elem": "f128"}, {"mode": "maybe"}, {"align": 0}, {"shape": [["?"]]}, {"name": "Y"}, {"more": 1}], ids=str)
def test_a_parameter_that_is_none(artifact, fakes, change):
    params = SCALE_PARAMS(fakes)
    params[2] |= change  # X
    assert refused(edit(artifact(fakes.SCALE), params=params)).code == "runtime/artifact-manifest"


def test_a_cubin_that_was_changed(artifact, fakes):
    folder = artifact(fakes.SCALE)
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(cubin.read_bytes()[:-1] + b"x")
    assert refused(folder).code == "runtime/artifact-hash"


def test_every_truncation_of_a_cubin_is_seen(artifact, fakes):
    """Also where the hash agrees or is missing: the driver would read past the end."""
    whole = fakes.elf(b"some machine code")
    for n in range(len(whole)):
        assert refused(artifact(fakes.SCALE, cubin=whole[:n])).code == "runtime/artifact-cubin"
    load(artifact(fakes.SCALE, cubin=whole))


@pytest.mark.parametrize("cubin", [b"", b".version 8.0\n" * 20, b"\x7fELF" + bytes(200)])
def test_a_cubin_that_is_none(artifact, fakes, cubin):
    assert refused(artifact(fakes.SCALE, cubin=cubin)).code == "runtime/artifact-cubin"


def test_loading_imports_no_compiler_and_no_driver(artifact, fakes):
    """In a process of its own: neither parser, plugin host, solver, command line nor CUDA bindings, and no array library."""
    folder = artifact(replace(fakes.SCALE))
    root = Path(__file__).parents[2]
    code = f"""
import sys
sys.path.insert(0, {str(root)!r})
import cake_core as cake
k = cake.load({str(folder)!r})
heavy = ("lark", "z3", "pluggy", "click", "rich", "cuda", "numpy", "torch", "cupy", "ml_dtypes")
print([m for m in sys.modules if m.partition(".")[0] in heavy])
print([m for m in sys.modules if m.startswith("cake_core.") and m.split(".")[1] not in ("runtime", "artifact", "diagnostics", "source", "frozen", "sha256")])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True).stdout
    assert out == "[]\n[]\n"
