"""The entry point: offers the role word `regs`."""

from cake_core import hookimpl
from cake_registers.regs import REGS
from cake_registers.reread import REREADS

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (REGS,)


@hookimpl
def cake_rereads():
    return REREADS
