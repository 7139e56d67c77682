"""The entry point: offers how the instructions of PTX are executed that belong to no family of this compiler's."""

from __future__ import annotations

from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated

CAKE_API = 1

#: Opcodes by 'module:function', and the section of the PTX ISA.
_TABLE = {
    "Arithmetic Instructions, of integers and floats": {
        "emulate": {
            "add": "add", "sub": "sub", "mul": "mul", "mad": "mad", "div": "div", "neg": "neg", "abs": "absolute", "min": "least", "max": "greatest",
        },
    },
    "Integer Arithmetic Instructions": {
        "integers": {
            "addc": "addc", "subc": "subc", "madc": "mad", "mul24": "mul24", "mad24": "mul24", "sad": "sad", "rem": "rem", "dp4a": "dp4a", "dp2a": "dp2a",
        },
        "bits": {
            "popc": "popc", "clz": "clz", "bfind": "bfind", "brev": "brev", "fns": "fns", "bfe": "bfe", "bfi": "bfi", "szext": "szext", "bmsk": "bmsk",
        },
    },
    "Logic and Shift Instructions": {
        "bits": {
            "and": "conjunction", "or": "disjunction", "xor": "exclusive", "not": "inverse", "cnot": "cnot", "lop3": "lop3", "shl": "shl", "shr": "shr",
            "shf": "shf",
        },
    },
    "Floating Point Instructions": {
        "floats": {"fma": "fma", "rcp": "rcp", "sqrt": "sqrt"},
        "functions": {
            "rsqrt": "rsqrt", "sin": "sin", "cos": "cos", "lg2": "lg2", "ex2": "ex2", "tanh": "tanh", "copysign": "copysign", "testp": "testp",
        },
    },
    "Comparison and Selection Instructions": {
        "compare": {"set": "set", "setp": "setp", "slct": "slct"},
        "bits": {"selp": "selp"},
    },
    "Data Movement and Conversion Instructions": {
        "convert": {"cvt": "cvt"},
        "bits": {"prmt": "prmt"},
        "move": {
            "mov": "mov", "cvta": "cvta", "isspacep": "isspacep", "getctarank": "getctarank", "createpolicy": "createpolicy", "prefetch": "nothing",
            "prefetchu": "nothing", "applypriority": "nothing", "discard": "discard",
        },
        "memory": {"ld": "ld", "ldu": "ld", "st": "st"},
    },
    "Parallel Synchronization and Communication Instructions": {
        "clusters": {"clusterlaunchcontrol.try_cancel": "try_cancel", "clusterlaunchcontrol.query_cancel": "query_cancel"},
    },
    "Miscellaneous and Control Flow Instructions": {"move": {"nanosleep": "nanosleep", "pmevent": "nothing", "trap": "trap", "call": "call"}},
}  # fmt: skip

EMULATES = tuple(
    Emulated(name, f"cake_isa.{module}:{function}", doc=f"PTX ISA, {section}: {name}")
    for section, modules in _TABLE.items()
    for module, functions in modules.items()
    for name, function in functions.items()
)


@hookimpl
def cake_emulates():
    return EMULATES
