"""The Python file beside a kernel's text: its shapes, inputs and reference.

    shapes()            list of {size: number}
    inputs(shape, rng)  {parameter: numpy array or number}, one for each `in` and `inout` tensor and each scalar that is no size
    reference(inputs)   {output: numpy array}, float64 or float32
    tolerance           {output: (relative, absolute)}, or a function (inputs, reference) -> {output: admitted error, elementwise}
    bench_shapes()      optional: the shapes to time; without it those of shapes()
    flops(shape)        optional: operations of one launch
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cake_core.frozen import frozen
from cake_core.runtime.errors import LaunchError

NEEDED = ("shapes", "inputs", "reference", "tolerance")


@frozen
class Companion:
    path: Path
    module: Any

    def call(self, name: str, *args: Any) -> Any:
        """What the function `name` returns. What it raises is a diagnostic that names file, function and cause."""
        try:
            return getattr(self.module, name)(*args)
        except Exception as error:
            message = f"'{name}' of '{self.path}' fails: {type(error).__name__}: {error}"
            raise LaunchError("runtime/companion-failed", message, why=_where(error, self.path)) from error

    def flops(self, shape: dict) -> int | None:
        return int(self.call("flops", shape)) if hasattr(self.module, "flops") else None

    def admitted(self, inputs: dict, expected: dict) -> dict[str, Any]:
        """The error that each element of each output may have, as arrays that broadcast to it."""
        import numpy

        given: Callable | dict = self.module.tolerance
        table = self.call("tolerance", inputs, expected) if callable(given) else given
        result = {}
        for name, reference in expected.items():
            if name not in table:
                raise LaunchError("runtime/companion-incomplete", f"'tolerance' of '{self.path}' has no entry for '{name}'")
            bound = table[name]
            result[name] = bound[0] * numpy.abs(reference) + bound[1] if isinstance(bound, tuple) else numpy.asarray(bound, numpy.float64)
        return result


def load_companion(path: Path) -> Companion:
    """Import the file (under a name of its own). Raises LaunchError."""
    path = Path(path)
    spec = importlib.util.spec_from_file_location(f"cake_companion_{path.stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise LaunchError("runtime/companion-missing", f"'{path}' is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise LaunchError("runtime/companion-failed", f"'{path}' can't be imported: {type(error).__name__}: {error}", why=_where(error, path)) from error
    if missing := [n for n in NEEDED if not hasattr(module, n)]:
        raise LaunchError("runtime/companion-incomplete", f"'{path}' has no {', '.join(map(repr, missing))}")
    return Companion(path, module)


def _where(error: BaseException, path: Path) -> str | None:
    """The line of the companion that the error passed through last."""
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return f"line {line} of '{path}'" if line else None
