"""The entry point: offers the architecture."""

from cake_core import hookimpl
from cake_sm90.architecture import SM90

CAKE_API = 1


@hookimpl
def cake_architectures():
    return (SM90,)
