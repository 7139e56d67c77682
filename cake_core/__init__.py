"""Cake: a compiler for GPU kernels. `import cake_core as cake`.

    k = cake.load("out/gemm")           # a built artifact, callable on GPU arrays
    d = k(A=a, B=b)

Everything here is loaded on use: importing this package reads neither the parser nor a driver.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["API_VERSION", "CakeError", "__version__", "hookimpl", "load", "types"]
__version__ = "0.1.0"

_LAZY = {
    "load": ("cake_core.runtime", "load"),
    "hookimpl": ("cake_core.plugins.hookspecs", "hookimpl"),
    "API_VERSION": ("cake_core.plugins.hookspecs", "API_VERSION"),
    "CakeError": ("cake_core.diagnostics", "CakeError"),
    "types": ("cake_core.plugins.api", None),
}


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'cake_core' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = import_module(module)
    return value if attribute is None else getattr(value, attribute)
