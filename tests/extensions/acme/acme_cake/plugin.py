"""What the distribution offers."""

from acme_cake.ada import ADA
from acme_cake.silu import SILU
from cake_core import hookimpl

CAKE_API = 1


@hookimpl
def cake_architectures():
    return (ADA,)


@hookimpl
def cake_primitives():
    return (SILU,)
