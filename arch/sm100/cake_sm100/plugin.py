"""The entry point: offers the architecture."""

from cake_core import hookimpl
from cake_sm100.architecture import SM100

CAKE_API = 1


@hookimpl
def cake_architectures():
    return (SM100,)
