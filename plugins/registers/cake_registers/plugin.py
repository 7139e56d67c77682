"""The entry point: offers the role word `regs`."""

from cake_core import hookimpl
from cake_registers.regs import REGS

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (REGS,)
