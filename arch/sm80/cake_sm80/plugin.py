"""The entry point: offers the architecture."""

from cake_core import hookimpl
from cake_sm80.architecture import SM80

CAKE_API = 1


@hookimpl
def cake_architectures():
    return (SM80,)
