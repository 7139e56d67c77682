"""z3's C interface, as far as proofs need it.

z3's own Python layer wraps every term in objects that count references, look at sorts and ask after each call whether it failed: a good part
of a proof went there. Here a call is a call. The library is the one that z3-solver brings, found without importing that layer.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path

P, U, I, B, S = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_bool, ctypes.c_char_p  # noqa: E741  as the manual's tables have them
#: What z3 calls when a call failed (`Z3_error_handler`): a context and a code.
HANDLER = ctypes.CFUNCTYPE(None, P, U)

#: By function: what it gives, and what it takes. (z3's C manual, z3_api.h; arrays and handles are pointers.)
FUNCTIONS: dict[str, tuple] = {
    "mk_config": (P,),
    "del_config": (None, P),
    "mk_context": (P, P),
    "del_context": (None, P),
    "set_error_handler": (None, P, HANDLER),
    "get_error_msg": (S, P, U),
    "set_ast_print_mode": (None, P, U),
    "global_param_set": (None, S, S),
    "get_full_version": (S,),
    "mk_string_symbol": (P, P, S),
    "mk_int_symbol": (P, P, I),
    "get_symbol_kind": (U, P, P),
    "get_symbol_int": (I, P, P),
    "get_symbol_string": (S, P, P),
    "mk_int_sort": (P, P),
    "mk_bool_sort": (P, P),
    "get_sort": (P, P, P),
    "mk_const": (P, P, P, P),
    "mk_func_decl": (P, P, P, U, P, P),
    "mk_app": (P, P, P, U, P),
    "mk_true": (P, P),
    "mk_false": (P, P),
    "mk_int64": (P, P, ctypes.c_int64, P),
    "mk_numeral": (P, P, S, P),
    **{f"mk_{op}": (P, P, U, P) for op in ("and", "or", "add", "sub", "mul", "distinct")},
    **{f"mk_{op}": (P, P, P, P) for op in ("eq", "le", "lt", "ge", "gt", "implies", "div", "mod")},
    "mk_not": (P, P, P),
    "mk_unary_minus": (P, P, P),
    "mk_ite": (P, P, P, P, P),
    "mk_pbeq": (P, P, U, P, P, I),
    "simplify": (P, P, P),
    "simplify_ex": (P, P, P, P),
    "substitute": (P, P, P, U, P, P),
    "get_ast_kind": (U, P, P),
    "get_app_decl": (P, P, P),
    "get_app_num_args": (U, P, P),
    "get_app_arg": (P, P, P, U),
    "get_decl_kind": (U, P, P),
    "get_decl_name": (P, P, P),
    "get_numeral_string": (S, P, P),
    "get_numeral_int64": (B, P, P, P),
    "ast_to_string": (S, P, P),
    "mk_params": (P, P),
    "params_inc_ref": (None, P, P),
    "params_set_uint": (None, P, P, P, U),
    "params_set_bool": (None, P, P, P, B),
    "mk_solver_for_logic": (P, P, P),
    "mk_tactic": (P, P, S),
    "tactic_inc_ref": (None, P, P),
    "tactic_and_then": (P, P, P, P),
    "mk_solver_from_tactic": (P, P, P),
    "solver_inc_ref": (None, P, P),
    "solver_dec_ref": (None, P, P),
    "solver_set_params": (None, P, P, P),
    "solver_push": (None, P, P),
    "solver_pop": (None, P, P, U),
    "solver_assert": (None, P, P, P),
    "solver_from_string": (None, P, P, S),
    "solver_check_assumptions": (I, P, P, U, P),
    "solver_get_model": (P, P, P),
    "solver_get_assertions": (P, P, P),
    "solver_get_reason_unknown": (S, P, P),
    "solver_get_statistics": (P, P, P),
    "stats_inc_ref": (None, P, P),
    "stats_dec_ref": (None, P, P),
    "stats_size": (U, P, P),
    "stats_get_key": (S, P, P, U),
    "stats_get_uint_value": (U, P, P, U),
    "ast_vector_inc_ref": (None, P, P),
    "ast_vector_dec_ref": (None, P, P),
    "ast_vector_size": (U, P, P),
    "ast_vector_get": (P, P, P, U),
    "model_inc_ref": (None, P, P),
    "model_dec_ref": (None, P, P),
    "model_eval": (B, P, P, P, B, P),
}


class Library:
    """The functions, each under its name without `Z3_`."""

    def __init__(self, path: str) -> None:
        loaded = ctypes.CDLL(path)
        for name, (gives, *takes) in FUNCTIONS.items():
            f = getattr(loaded, f"Z3_{name}")
            f.restype, f.argtypes = gives, takes
            setattr(self, name, f)
        # It would take an interrupt from the keyboard for itself while it works, and then answer unknown.
        self.global_param_set(b"ctrl_c", b"false")


@cache
def library() -> Library:
    """The library, loaded when first asked for. Raises ModuleNotFoundError where there is none."""
    spec = find_spec("z3")
    folders = [Path(p) for p in (spec.submodule_search_locations or () if spec else ())]
    for name in ("libz3.so", "libz3.dylib", "libz3.dll"):
        for folder in folders:
            for path in (folder / "lib" / name, folder / name):
                if path.is_file():
                    return Library(str(path))
    raise ModuleNotFoundError("z3's library is not there: install z3-solver", name="z3")


def version() -> str:
    """z3's own, such as `4.15.3`."""
    return ".".join(library().get_full_version().decode().removeprefix("Z3 ").split(" ")[0].split(".")[:3])
