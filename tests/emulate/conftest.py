"""Small kernels in PTX, executed without a GPU."""

import pytest

from cake_core.emulate.arrays import on_arrays
from cake_core.plugins import load_registry

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 sm[];\n"


def kernel(params: str, body: str) -> str:
    """A text: `params` as `A:b64 n:b32`, `body` with registers %p0-7, %h0-7, %r0-15, %d0-15, %f0-15; addresses of parameters are loaded into registers
    that bear their names in small letters."""
    given = [p.split(":") for p in params.split()]
    lines = [".visible .entry k(", ",\n".join(f"  .param .{t} {n}" for n, t in given), ")", "{"]
    lines += ["  .reg .pred %p<8>;", "  .reg .b16 %h<8>;", "  .reg .b32 %r<16>;", "  .reg .b64 %d<16>;", "  .reg .f32 %f<16>;"]
    for n, t in given:
        lines += [f"  .reg .{t} %{n.lower()};", f"  ld.param.{t} %{n.lower()}, [{n}];"]
    return HEAD + "\n".join([*lines, body, "  ret;", "}"]) + "\n"


@pytest.fixture(scope="session")
def emulates():
    return load_registry().emulates


@pytest.fixture
def run(emulates):
    """`run("A:b64", body, A=array, block=64, ..)`."""

    def execute(params: str, body: str, **given):
        names = [p.split(":")[0] for p in params.split()]
        arguments = {n: given.pop(n) for n in names}
        return on_arrays(kernel(params, body), arguments, emulates, **given)

    return execute
