"""The artifact: a folder with PTX, cubin, manifest and source map, and the only thing that runtime and emulator need.

    manifest.json   this module's `Manifest`, canonical JSON (sorted keys, two spaces)
    kernel.ptx      the text
    kernel.cubin    where an assembler was at hand
    sourcemap.json  {"lines": [[file, line, column] | null, ...]}, one a PTX line; of a text with labels also "labels": where
                    each begins, and the registers of what is in scope there (`lower.stops`)
    derived.cake    the derived form
    assumes.ptx     where the text has `assume`s: an entry that checks them on the device

Formulas (grid, extents, checks) are JSON trees: a number, a parameter name, or [op, arg, ...] with op one of
`+ - * / % min max ceildiv == != <= < >= > and or not if`; `/` floors. Those of `assumes` and of a plan also read inputs:
["at", tensor, index, ...], and in `assumes` ["monotone", tensor] and ["finite", tensor].
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, field
from pathlib import Path

from cake_core.frozen import frozen
from cake_core.sha256 import sha256 as hashed

SCHEMA = 1

Formula = "int | str | list"

WORKSPACE = "workspace"
MODES = ("in", "out", "inout", WORKSPACE)


@frozen
class ParamInfo:
    """One kernel parameter in the order of the text. `kind`: "scalar" or "tensor".

    A tensor has a `mode` of MODES, `shape` (formulas), and `contiguous`: all of its strides must be packed (else a padded
    leading stride is taken); `align`: bytes that its address must be a multiple of.
    """

    name: str
    kind: str
    elem: str
    mode: str | None = None
    shape: tuple = ()
    contiguous: bool = False
    align: int = 1


@frozen
class TensorMapInfo:
    """One tensor map parameter: `box` and the tensor's dimensions outermost first; `swizzle` in bytes (0: none)."""

    param: str
    tensor: str
    elem: str
    box: tuple[int, ...]
    swizzle: int


@frozen
class EntryParamInfo:
    """One parameter of the PTX entry, in order. `kind`: "map" (index into `tensor_maps`), "pointer" or "scalar" (a parameter's name)."""

    kind: str
    ref: int | str
    type: str = ""


@frozen
class LaunchInfo:
    """`items`: formula, the number of work items (CTAs, or clusters where `cluster` > 1). `persistent`: the grid is
    min(items, resident clusters) clusters, otherwise items. `ctas_per_sm`: a bound on residency, or None.
    `starts_early`: the grid may start before those in front of it in the stream have ended, since its text waits for them."""

    threads: int
    cluster: int
    shared_bytes: int
    items: Formula
    persistent: bool
    ctas_per_sm: int | None = None
    starts_early: bool = False


@frozen
class Check:
    """A launch contract: `formula` must hold; `text` is the `require` as written."""

    formula: Formula
    text: str


#: What the device's check says of a contract, a word of 64 bits. HOLDS is what the host writes before; of a statement about a whole
#: input any other number is that of an element which breaks it, in memory order; a condition does not hold, reads outside of an
#: input, or divides by zero.
HOLDS, FALSE, OUTSIDE, ZERO = 2**64 - 1, 0, 1, 2


@frozen
class DeviceCheck:
    """The entry of `assumes.ptx`: one verdict a contract of `assumes`, in their order. Any number of CTAs of `threads`, no shared memory.

    `entry_params`: as of the kernel, and of kind "verdicts" the pointer to the verdicts. Inputs are read as packed.
    """

    entry: str
    threads: int
    entry_params: tuple[EntryParamInfo, ...]


@frozen
class PlanInfo:
    """The table of a launch's items, which the host makes: the kernel's parameters `table` [`count`, 2 + dims] and `count`.

    A row of the table is an item: group, first row, one coordinate a dimension. Group g of `groups` has the rows from
    `offsets`[g] to `offsets`[g + 1], in blocks of `block`. `dims` and `lets` are pairs of name and formula; lets stand in order and may
    name `b`, `r0`, `r1`, dimensions and earlier lets. `order`: "longest_first" or "balanced", by `cost`; `section`: neighbours
    of (group, coordinates) that are worked on together. An item is a cluster's: it takes `block` rows, and `step` neighbours of the
    first dimension.
    """

    table: str
    count: str
    offsets: str
    groups: Formula
    block: int
    dims: tuple
    lets: tuple
    order: str
    cost: Formula
    section: int = 0
    step: int = 1


@frozen
class Manifest:
    kernel: str
    entry: str
    arch: str
    target: str
    compute_capability: tuple[int, int]
    params: tuple[ParamInfo, ...]
    entry_params: tuple[EntryParamInfo, ...]
    tensor_maps: tuple[TensorMapInfo, ...]
    launch: LaunchInfo
    requires: tuple[Check, ...]
    constants: dict[str, int | float | bool]
    assumes: tuple[Check, ...] = ()  # contracts about the data, which nothing checks unless asked to
    device_check: DeviceCheck | None = None  # of `assumes`
    plan: PlanInfo | None = None  # where the host makes a table of the items
    roles: tuple[dict, ...] = ()
    shared_map: tuple[dict, ...] = ()
    pipelines: tuple[dict, ...] = ()
    unproved: tuple[str, ...] = ()
    allowed_unproved: tuple[str, ...] = ()  # of these, the ones that a build refuses unless it is told not to
    violated: tuple[str, ...] = ()  # codes of what the verifier refuses in the text: built for a test, and not loaded unless asked to
    waived: tuple[dict, ...] = ()  # rules of safety or legality that the project has below their level: `rule`, `level`, `reason`, `owner`
    suppressed: tuple[dict, ...] = ()  # findings that a comment of the text lets pass: `rule`, `line`, `reason`
    reread: dict | None = None  # roles whose machine code was read back and at which sizes, and why others were not; None: it was not asked
    compiler: dict = field(default_factory=dict)  # versions of cake, plugins, rule packs and assembler, the suite, the sha256 of the lock file
    hashes: dict[str, str] = field(default_factory=dict)  # file name to sha256, the source text included
    assembled: dict | None = None  # registers, spills, shared bytes as the assembler reports them
    portable: bool = False  # devices of a higher compute capability run the text, compiled by their driver
    schema: int = SCHEMA

    @property
    def hidden(self) -> frozenset[str]:
        """Parameters that the runtime fills and no caller names."""
        return self.workspaces | (frozenset((self.plan.table, self.plan.count)) if self.plan else frozenset())

    @property
    def workspaces(self) -> frozenset[str]:
        """Tensors that hold zeros before a launch and again behind it: memory of the runtime, one a stream."""
        return frozenset(p.name for p in self.params if p.mode == WORKSPACE)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Raises ValueError with a plain reason where the text is no manifest of this schema."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"manifest schema {data.get('schema') if isinstance(data, dict) else None!r}, this version reads {SCHEMA}")
        tuples = lambda kind, key: tuple(kind(**{k: tuple(v) if isinstance(v, list) and k in ("shape", "box") else v for k, v in x.items()}) for x in data[key])  # noqa: E731
        try:
            return Manifest(
                **{
                    **data,
                    "compute_capability": tuple(data["compute_capability"]),
                    "params": tuples(ParamInfo, "params"),
                    "entry_params": tuples(EntryParamInfo, "entry_params"),
                    "tensor_maps": tuples(TensorMapInfo, "tensor_maps"),
                    "launch": LaunchInfo(**data["launch"]),
                    "requires": tuples(Check, "requires"),
                    "assumes": tuples(Check, "assumes"),
                    "device_check": DeviceCheck(**{**c, "entry_params": tuple(EntryParamInfo(**e) for e in c["entry_params"])}) if (c := data.get("device_check")) else None,
                    "plan": PlanInfo(**{k: tuple(map(tuple, v)) if k in ("dims", "lets") else v for k, v in data["plan"].items()}) if data["plan"] else None,
                    **{k: tuple(data[k]) for k in ("roles", "shared_map", "pipelines", "unproved")},
                    **{k: tuple(data.get(k, ())) for k in ("allowed_unproved", "violated", "waived", "suppressed")},
                }
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"manifest is incomplete: {error}") from None


def sha256(data: bytes) -> str:
    return hashed(data).hexdigest()


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write all of `files` as `folder`, or nothing: they are gathered beside it and put in place by a rename."""
    import shutil
    import tempfile

    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, data in files.items():
            (staging / name).write_bytes(data)
        staging.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
            os.rename(folder, old / "it")
            os.rename(staging, folder)
            shutil.rmtree(old)
        else:
            os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
