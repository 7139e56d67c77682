"""What `cake run` and `cake bench` found: plain records, JSON by `to_json()`."""

from __future__ import annotations

import json
from dataclasses import asdict

from cake_core.frozen import frozen


class _Record:
    __slots__ = ()

    def to_dict(self) -> dict:
        return asdict(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, two spaces, one final line break."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"


@frozen
class DeviceInfo:
    """The GPU and driver that a report was made on. `driver`: the CUDA version that the driver offers, such as "13.0"."""

    ordinal: int
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    driver: str


@frozen
class OutputReport:
    """One output of one run, against the reference in float64.

    `worst`: the largest finite error over what the tolerance admits there (None: not compared, or nothing finite); over 1
    is wrong. `error_rms`: norm of the error over the norm of the reference (None also where the reference is 0). `wrong`: elements outside the tolerance, `unwritten`:
    elements that still held the poison where the reference has a number, `guard_bytes`: bytes changed next to the
    output. `first_wrong`: index of the first wrong element.
    """

    name: str
    shape: tuple[int, ...]
    elem: str
    compared: bool
    worst: float | None
    error_rms: float | None
    wrong: int
    unwritten: int
    guard_bytes: int
    first_wrong: tuple[int, ...] | None = None

    @property
    def ok(self) -> bool:
        return self.wrong == 0 and self.guard_bytes == 0 and self.unwritten == 0


@frozen
class ShapeReport:
    """One shape. `fault`: the diagnostic's code and message where the launch was refused or the device faulted."""

    shape: dict[str, int | float]
    ok: bool
    outputs: tuple[OutputReport, ...]
    fault: str | None = None


@frozen
class RunReport(_Record):
    """`reference`: outputs were compared with the companion's reference; otherwise only guard bands were."""

    kernel: str
    arch: str
    artifact: str
    device: DeviceInfo
    seed: int
    reference: bool
    ok: bool
    results: tuple[ShapeReport, ...]
    notes: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


@frozen
class Timing:
    """Microseconds a launch, by a pair of events each: median, 10th and 90th percentile of `samples`."""

    median_us: float
    p10_us: float
    p90_us: float
    samples: int


@frozen
class BenchResult:
    """One shape. `bytes`: of all arrays, once each; `gb_per_s` from them; `tflop_per_s` where the companion has `flops(shape)`."""

    shape: dict[str, int | float]
    timing: Timing | None
    bytes: int
    gb_per_s: float | None
    flops: int | None
    tflop_per_s: float | None
    fault: str | None = None


@frozen
class BenchReport(_Record):
    kernel: str
    arch: str
    artifact: str
    device: DeviceInfo
    seed: int
    ok: bool
    method: str
    results: tuple[BenchResult, ...]
    notes: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
