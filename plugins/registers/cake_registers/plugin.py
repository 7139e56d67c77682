"""The entry point: offers the role word `regs`."""

from cake_core import hookimpl
from cake_core.ptx.emulated import Emulated
from cake_registers.regs import REGS
from cake_registers.reread import REREADS

CAKE_API = 1

EMULATES = (
    Emulated("setmaxnreg", "cake_registers.emulate:setmaxnreg", waits=True, doc="PTX ISA, setmaxnreg"),
)


@hookimpl
def cake_primitives():
    return (REGS,)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
