"""Reads an artifact folder and refuses a damaged one with a `runtime/artifact-*` diagnostic."""

from __future__ import annotations

import os
import struct
from collections.abc import Container, Mapping
from pathlib import Path

from cake_core.artifact import MODES, EntryParamInfo, Formula, Manifest, sha256
from cake_core.frozen import frozen
from cake_core.runtime.elements import ELEMENTS
from cake_core.runtime.errors import ArtifactError
from cake_core.runtime.formula import FormulaError, compile_formula
from cake_core.runtime.plan import ORDERS

MANIFEST, CUBIN, PTX, ASSUMES = "manifest.json", "kernel.cubin", "kernel.ptx", "assumes.ptx"
REBUILD = "build the artifact again with 'cake build'"


@frozen
class LoadedArtifact:
    """`ptx`: the text of a portable kernel, for devices that the cubin does not run on; without a `cubin`, of any. `assumes`: that of the check of its contracts."""

    folder: Path
    manifest: Manifest
    cubin: bytes
    ptx: bytes | None = None
    assumes: bytes | None = None


def read_artifact(folder: str | Path, violated: bool = False, text: bool = False) -> LoadedArtifact:
    """Read and verify `manifest.json`, `kernel.cubin`, of a portable kernel `kernel.ptx`, and `assumes.ptx` where there is one.

    `violated`: take one whose text the verifier refused too; `text`: for a device that executes PTX, so that the cubin is neither needed nor read.
    Raises ArtifactError."""
    folder = Path(folder)
    if not os.path.isdir(folder):  # Path.is_dir raises for a name that is too long or in a closed folder
        raise ArtifactError("runtime/artifact-missing", f"'{folder}' is no artifact folder", fix=REBUILD)
    manifest = read_manifest(folder)
    if manifest.violated and not violated:
        raise ArtifactError(
            "runtime/violated",
            f"'{manifest.kernel}' in '{folder}' was built from a text that the verifier refuses: {', '.join(manifest.violated)}",
            why="it may hang, write where it should not, or give other results each time",
            fix="mend the text and build it again; a test of what goes wrong gives 'violated=True'",
        )
    assumes = _text(folder, manifest, ASSUMES) if manifest.device_check else None
    if text:
        return LoadedArtifact(folder, manifest, b"", _text(folder, manifest, PTX), assumes)
    cubin = _read(folder, CUBIN, "runtime/artifact-no-cubin", "it was built without an assembler; install one and build again")
    _as_built(folder, manifest, CUBIN, cubin)
    if reason := _elf_fault(cubin):
        raise ArtifactError("runtime/artifact-cubin", f"'{CUBIN}' in '{folder}' is no whole cubin: {reason}", fix=REBUILD)
    ptx = _text(folder, manifest, PTX) if manifest.portable else None
    return LoadedArtifact(folder, manifest, cubin, ptx, assumes)


def _text(folder: Path, manifest: Manifest, name: str) -> bytes:
    text = _read(folder, name, "runtime/artifact-no-ptx", REBUILD)
    _as_built(folder, manifest, name, text)
    if b"\0" in text:  # the driver takes the text up to its first zero byte
        raise ArtifactError("runtime/artifact-ptx", f"'{name}' in '{folder}' is no text", fix=REBUILD)
    return text


def _as_built(folder: Path, manifest: Manifest, name: str, data: bytes) -> None:
    stated = manifest.hashes.get(name)
    if stated is not None and sha256(data) != stated:
        why = "the file was changed or damaged after the build"
        message = f"'{name}' in '{folder}' does not have the hash that its manifest states"
        raise ArtifactError("runtime/artifact-hash", message, why=why, fix=REBUILD)


def read_manifest(folder: Path) -> Manifest:
    text = _read(folder, MANIFEST, "runtime/artifact-no-manifest", REBUILD)
    try:
        manifest = Manifest.from_json(text.decode("utf-8"))
        _verify(manifest)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:  # JSON and UTF-8 errors are ValueErrors
        reason = f"'{MANIFEST}' in '{folder}' can't be used: {error}"
        raise ArtifactError("runtime/artifact-manifest", reason, fix=REBUILD) from None
    return manifest


def _read(folder: Path, name: str, code: str, fix: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise ArtifactError(code, f"'{folder}' holds no '{name}'", fix=fix) from None
    except OSError as error:
        raise ArtifactError("runtime/artifact-unreadable", f"'{folder / name}' can't be read: {error.strerror}") from None


def _verify(m: Manifest) -> None:
    """What the launch relies on. Raises ValueError with a plain reason (FormulaError is one)."""
    names = [p.name for p in m.params]
    if len(set(names)) != len(names):
        raise ValueError("two parameters have one name")
    scalars = [p.name for p in m.params if p.kind == "scalar"]
    for p in m.params:
        _need(p.kind in ("scalar", "tensor"), f"parameter '{p.name}' is of unknown kind '{p.kind}'")
        _need(p.elem in ELEMENTS, f"parameter '{p.name}' has the unknown element type '{p.elem}'")
        if p.kind == "tensor":
            _need(p.mode in MODES, f"tensor '{p.name}' has the unknown mode '{p.mode}'")
            _need(isinstance(p.align, int) and p.align >= 1, f"tensor '{p.name}' has the alignment {p.align!r}")
            for dim in p.shape:
                compile_formula(dim, scalars)
    tensors = {p.name: p for p in m.params if p.kind == "tensor"}
    for t in m.tensor_maps:
        _need(t.tensor in tensors, f"tensor map '{t.param}' is of the unknown tensor '{t.tensor}'")
        _need(len(t.box) == len(tensors[t.tensor].shape), f"the box of tensor map '{t.param}' has another rank than '{t.tensor}'")
        _need(1 <= len(t.box) <= 5, f"tensor map '{t.param}' has rank {len(t.box)}; 1 to 5 are possible")
        _need(t.swizzle in (0, 32, 64, 128), f"tensor map '{t.param}' has the swizzle {t.swizzle}")
        _need(t.elem in ELEMENTS and ELEMENTS[t.elem].map_type is not None, f"tensor map '{t.param}' can't hold '{t.elem}'")
    for e in m.entry_params:
        _entry_param(e, {"map": range(len(m.tensor_maps)), "pointer": tensors, "scalar": scalars})
    if m.device_check is not None:
        _need(isinstance(m.device_check.threads, int) and m.device_check.threads >= 32, f"a check has {m.device_check.threads!r} threads")
        for e in m.device_check.entry_params:
            _entry_param(e, {"verdicts": ("",), "pointer": tensors, "scalar": scalars})
    launch = m.launch
    for what, value in (("threads", launch.threads), ("cluster", launch.cluster), ("ctas_per_sm", launch.ctas_per_sm or 1)):
        _need(isinstance(value, int) and value >= 1, f"launch has {what} {value!r}")
    _need(isinstance(launch.shared_bytes, int) and launch.shared_bytes >= 0, f"launch has shared_bytes {launch.shared_bytes!r}")
    _formula(launch.items, scalars)
    for check in m.requires:
        _formula(check.formula, scalars)
        _need(isinstance(check.text, str), "a require has no text")
    for check in m.assumes:
        _need(isinstance(check.text, str), "an assume has no text")
    if m.plan is not None:
        p = m.plan
        _need(p.table in tensors and p.count in scalars, "a plan fills parameters that are not there")
        _need(p.offsets in tensors and tensors[p.offsets].elem == "i32", f"a plan reads the unknown offsets '{p.offsets}'")
        _need(isinstance(p.block, int) and p.block >= 1, f"a plan has blocks of {p.block!r} rows")
        _need(p.order in ORDERS, f"a plan has the unknown order '{p.order}'")
        _need(isinstance(p.section, int) and (p.section >= 1 or p.order != "balanced"), f"a plan has sections of {p.section!r}")
    major, minor = m.compute_capability
    _need(isinstance(major, int) and isinstance(minor, int), "compute_capability is no pair of numbers")
    _need(isinstance(m.portable, bool), f"portable is {m.portable!r}")
    _need(isinstance(m.entry, str) and m.entry.isascii() and bool(m.entry), f"entry is {m.entry!r}")
    _need(isinstance(m.hashes, dict), "hashes is no table")
    for what in ("unproved", "allowed_unproved", "violated"):
        _need(all(isinstance(c, str) for c in getattr(m, what)), f"{what} is no list of words")
    _need(all(isinstance(w, dict) and isinstance(w.get("rule"), str) for w in m.waived), "waived is no list of rules")


def _entry_param(e: EntryParamInfo, kinds: Mapping[str, Container]) -> None:
    _need(e.kind in kinds, f"an entry parameter is of unknown kind '{e.kind}'")
    _need(e.ref in kinds[e.kind], f"an entry parameter refers to the unknown {e.kind} {e.ref!r}")


def _need(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def _formula(tree: Formula, scalars: list[str]) -> None:
    try:
        compile_formula(tree, scalars)
    except FormulaError as error:
        raise ValueError(str(error)) from None


def _elf_fault(data: bytes) -> str | None:
    """Why `data` is no complete 64-bit little-endian ELF file (a cubin is one), or None.

    The driver reads a cubin without being told its length, so a truncated one must not reach it. Checked are the
    header, and that every section, segment and table of headers lies inside the file (ELF-64 object file format).
    """
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return "it does not start with an ELF header"
    if data[4:6] != b"\x02\x01":
        return "it is no 64-bit little-endian ELF file"
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<4H", data, 54)
    if phoff + phentsize * phnum > len(data) or shoff + shentsize * shnum > len(data):
        return "it is cut short"
    if shnum == 0 or shentsize < 64:
        return "it has no sections"
    for i in range(shnum):
        kind, = struct.unpack_from("<I", data, shoff + i * shentsize + 4)
        offset, size = struct.unpack_from("<QQ", data, shoff + i * shentsize + 24)
        if kind not in (0, 8) and offset + size > len(data):  # SHT_NULL and SHT_NOBITS occupy no bytes of the file
            return "it is cut short"
    return None
