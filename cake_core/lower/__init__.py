"""From a typed kernel in derived form to one PTX module. Lowering decides nothing: everything it writes stands in the text.

kernel.py      the entry: parameters, prologue, roles, epilogue, manifest records
roles.py       which warps run which role, and which roles are written once an instance
statements.py  control flow, variables, fragments, operations
scalars.py     integers, conditions, scalar floats
values.py      register tiles: which register of a thread holds which element
addresses.py   shared memory: slots, panels, swizzle, barriers
inputs.py      what the entry takes: tensor maps, pointers, scalars
context.py     the `LowerContext` that primitives see, over the rooms above
contracts.py   the entry that checks the kernel's `assume`s on the device
faults.py      what a plugin's lowering raised, as a diagnostic that names it
"""

from cake_core.lower.contracts import device_check
from cake_core.lower.kernel import Lowered, lower

__all__ = ["Lowered", "device_check", "lower"]
