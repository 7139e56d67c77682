"""Contracts about a kernel's data, its `assume`s, checked on request: where the inputs are.

On the device by the entry of `assumes.ptx`: a launch on the caller's stream, then one verdict a contract comes back, and no data. On
the host, in numpy, where an input that a contract reads lies in host memory, or the artifact has no such entry. Both say the same.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from math import prod
from typing import Any

from cake_core.artifact import FALSE, HOLDS, OUTSIDE, ZERO, Check, Formula, LaunchInfo
from cake_core.runtime.binding import Signature, scalar, solve_sizes
from cake_core.runtime.device_array import Memory
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import ELEMENTS, scalar_cell
from cake_core.runtime.errors import LaunchError
from cake_core.runtime.formula import FormulaError, formula_text
from cake_core.runtime.host_formula import as_f32, evaluate, inputs_in
from cake_core.runtime.host_inputs import on_host, packed_view, read, shape_of
from cake_core.runtime.launch import configuration, image_for
from cake_core.runtime.loader import LoadedArtifact
from cake_core.runtime.views import View

#: CTAs a multiprocessor: as many threads as one holds, of 256 a CTA on the devices that there are.
CTAS = 8
_FAULTS = {OUTSIDE: "it reads outside of an input", ZERO: "it divides by zero"}


class Contracts:
    """The contracts of one kernel. `spoken`: the inputs that they read."""

    def __init__(self, artifact: LoadedArtifact, signature: Signature):
        self._artifact, self._signature = artifact, signature
        self._params = {p.name: p for p in signature.tensors}
        self.spoken = tuple(dict.fromkeys(n for c in artifact.manifest.assumes for n in inputs_in(c.formula)))
        self._library: Any = None
        self._functions: dict[tuple[int, int], Any] = {}  # by device and context
        self._lock = threading.Lock()

    def check(self, given: dict[str, Any], stream: int, cuda: Driver) -> None:
        """`given`: the arguments of a call by name. Raises LaunchError with the first contract that does not hold."""
        s = self._signature
        scalars = {p.name: scalar(p, given[p.name]) for p in s.scalars if p.name in given}
        shapes = {n: shape_of(n, given[n], stream, cuda) for n in given if n in self._params}
        values = solve_sizes(s, shapes, scalars, ())
        if self._artifact.assumes is None or not self.spoken or any(on_host(given[n]) for n in self.spoken):
            self._on_host(given, values, stream, cuda)
            return
        views = {n: packed_view(self._params[n], given[n], stream, cuda) for n in self.spoken}
        devices = {n: v.device for n, v in views.items() if v.device is not None}
        if len(set(devices.values())) > 1:
            where = ", ".join(f"'{n}' on device {d}" for n, d in devices.items())
            raise LaunchError("runtime/devices", f"inputs of one check lie on several devices: {where}", fix="put all arrays on one device")
        if not devices:  # no input has an element
            self._on_host(given, values, stream, cuda)
            return
        self._shapes(views, values)
        verdicts = self._on_device(next(iter(devices.values())), views, values, stream, cuda)
        for contract, verdict in zip(self._artifact.manifest.assumes, verdicts, strict=True):
            self._judge(contract, verdict, views)

    # --- on the host

    def _on_host(self, given: dict[str, Any], values: dict[str, Any], stream: int, cuda: Driver) -> None:
        inputs = {n: read(self._params[n], given[n], stream, cuda) for n in self.spoken}
        floats = {p.name for p in self._signature.scalars if p.elem == "f32"}
        values = {n: as_f32(x) if n in floats else x for n, x in values.items()}
        for contract in self._artifact.manifest.assumes:
            try:
                verdict = HOLDS if evaluate(contract.formula, values, inputs) else _first(contract.formula, inputs)
            except (FormulaError, ZeroDivisionError, IndexError) as error:
                raise self._unchecked(contract, str(error)) from None
            self._judge(contract, verdict, inputs)

    # --- on the device

    def _on_device(self, device: int, views: dict[str, View], values: dict[str, Any], stream: int, cuda: Driver) -> tuple[int, ...]:
        """Launch the check and read its verdicts."""
        m = self._artifact.manifest
        info, count = m.device_check, len(m.assumes)
        context = cuda.context(device)
        function = self._function(device, context, cuda)
        verdicts = Memory(8 * count, device, cuda)
        verdicts.write(verdicts.pointer, HOLDS.to_bytes(8, "little") * count)
        elements = {p.name: ELEMENTS[p.elem] for p in self._signature.scalars}
        cells = ctypes.create_string_buffer(8 * len(info.entry_params))
        for i, e in enumerate(info.entry_params):
            match e.kind:
                case "scalar":
                    cells[8 * i : 8 * i + 8] = scalar_cell(elements[e.ref], values[e.ref])
                case _:
                    struct.pack_into("<Q", cells, 8 * i, verdicts.pointer if e.kind == "verdicts" else views[e.ref].pointer)
        first = ctypes.addressof(cells)
        pointers = (ctypes.c_void_p * len(info.entry_params))(*(first + 8 * i for i in range(len(info.entry_params))))
        most = max(prod(v.shape) for v in views.values())
        blocks = min(-(-most // info.threads), CTAS * cuda.attribute(device, "MULTIPROCESSOR_COUNT"))
        config = configuration(cuda, LaunchInfo(info.threads, 1, 0, 0, False), blocks, stream)
        with cuda.active(context):
            cuda.order_after(0, stream)  # the verdicts were written in the legacy stream
            cuda.call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)
            cuda.call("cuStreamSynchronize", cuda.api.CUstream(stream))
        return struct.unpack(f"<{count}Q", verdicts.read(verdicts.pointer, 8 * count))

    def _function(self, device: int, context: Any, cuda: Driver) -> Any:
        """The entry in `context`. The driver compiles its text, for the devices that the kernel itself runs on."""
        key = (device, int(context))
        with self._lock:
            if key not in self._functions:
                image_for(cuda, self._artifact, device)
                with cuda.active(context):
                    if self._library is None:
                        self._library = cuda.call("cuLibraryLoadData", self._artifact.assumes + b"\0", [], [], 0, [], [], 0)
                    entry = self._artifact.manifest.device_check.entry
                    self._functions[key] = cuda.call("cuKernelGetFunction", cuda.call("cuLibraryGetKernel", self._library, entry.encode()))
            return self._functions[key]

    def _shapes(self, views: dict[str, View], values: dict[str, Any]) -> None:
        """The entry counts elements by the sizes: an input of another shape would be left out in part, or read beyond its end."""
        for e in self._artifact.manifest.device_check.entry_params:
            if e.kind == "scalar" and e.ref not in values:
                fix = f"give '{e.ref}', or an array whose shape has it"
                raise LaunchError("runtime/size-unknown", f"'{e.ref}' can't be found from the arrays given", fix=fix, resource=e.ref)
        for name, view in views.items():
            extents, texts = self._signature.extents[name], self._params[name].shape
            shape = tuple(extent(values) for extent in extents)
            if view.shape != shape:
                wanted = ", ".join(f"{formula_text(t)} = {n}" for t, n in zip(texts, shape, strict=True))
                raise LaunchError("runtime/shape", f"'{name}' has the shape {list(view.shape)}, and [{wanted}] is needed", resource=name)

    # --- what is said

    def _judge(self, contract: Check, verdict: int, inputs: dict[str, Any]) -> None:
        if verdict == HOLDS:
            return
        match contract.formula:
            case [("monotone" | "finite"), str(tensor)]:
                at = [str(i) for i in _coordinates(verdict, tuple(inputs[tensor].shape))]
                found = f"{tensor}[{', '.join(at)}] breaks it"
            case _ if verdict in _FAULTS:
                raise self._unchecked(contract, _FAULTS[verdict])
            case _:
                found = None
        relies = "the kernel relies on it: results may be wrong, and memory that is not its own may be touched"
        raise LaunchError(
            "runtime/assume",
            f"'{self._signature.kernel}' assumes {contract.text}, which does not hold",
            why=f"{found}; {relies}" if found else relies,
        )

    def _unchecked(self, contract: Check, why: str) -> LaunchError:
        return LaunchError("runtime/assume", f"'{contract.text}' of '{self._signature.kernel}' can't be checked: {why}")


def _first(formula: Formula, inputs: dict[str, Any]) -> int:
    """The verdict on a contract that does not hold: FALSE, or the first element that breaks it."""
    import numpy as np

    match formula:
        case ["monotone", str(tensor)]:
            x = inputs[tensor]
            return int(np.flatnonzero(x[1:] < x[:-1])[0]) + 1
        case ["finite", str(tensor)]:
            return int(np.flatnonzero(~np.isfinite(inputs[tensor].reshape(-1)))[0])
    return FALSE


def _coordinates(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    out = []
    for extent in reversed(shape):
        out.append(flat % extent)
        flat //= extent
    return tuple(reversed(out))
