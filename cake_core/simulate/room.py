"""What is the same for all statements of a kernel that is simulated: where its names live, and what plugins give for calls."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from cake_core.diagnostics import CakeError, fail
from cake_core.frozen import thawed
from cake_core.ir.build import lift
from cake_core.ir.nodes import Call, Kernel, Name, Op
from cake_core.ir.plan import Plan
from cake_core.ir.types import ELEMENTS, Tile
from cake_core.machine.values import MachineError, Names
from cake_core.primitive import Distribution, Primitive
from cake_core.primitive.asking import FAULT, owner
from cake_core.primitive.simulated import Simulated
from cake_core.simulate.context import Context
from cake_core.simulate.expressions import UNSIGNED, Bound, Compiled, Unwritten
from cake_core.simulate.lanes import Holding, holding_of

if TYPE_CHECKING:
    from cake_core.simulate.site import Site


@thawed(eq=False)
class Room:
    """`types`: of the tensors among the parameters; `slots`: of environments, by name."""

    kernel: Kernel
    registry: Any
    plan: Plan
    slots: Names = field(default_factory=lambda: Names({}))
    types: dict[str, Tile] = field(init=False)
    holdings: dict[int, tuple[Distribution, Holding]] = field(default_factory=dict)
    extents: dict[str, tuple[Compiled, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types = {p.name: Tile("global", ELEMENTS[p.declared.name], p.declared.groups) for p in self.kernel.params if p.mode is not None}

    def holding(self, d: Distribution) -> Holding:
        if id(d) not in self.holdings:
            self.holdings[id(d)] = d, holding_of(d)
        return self.holdings[id(d)][1]

    def hidden(self) -> int:
        """A slot that no name has."""
        return self.slots.slot(f" {len(self.slots.slots)}")

    def memory_of(self, name: Name, names: dict[str, Bound]) -> tuple[str, Tile]:
        """Where what a place names lives, and its type. Raises CakeError."""
        bound = names.get(name.id)
        if bound is not None and bound.type is not None:
            return "registers", bound.type
        if name.id in self.types:
            return "global", self.types[name.id]
        memory = "shared" if name.id in self.plan.buffers else "tensor" if name.id in self.plan.tensors else None
        if memory is None or not isinstance(name.type, Tile):
            raise fail("runtime/not-simulated", f"a place in '{name.id}' is not simulated", name.span)
        return memory, name.type

    def extents_of(self, tensor: str) -> tuple[Compiled, ...]:
        """A tensor's extents, compiled."""
        if tensor not in self.types:
            return ()
        if tensor not in self.extents:
            from cake_core.simulate.site import Site

            of = Site(self, {}, ()).expressions.of
            self.extents[tensor] = tuple(of(lift(d)) for d in self.types[tensor].shape)
        return self.extents[tensor]

    def called(self, site: Site, call: Call) -> Compiled:
        """The value of a function that a plugin offers. Raises CakeError where it is not simulated."""
        function = self.registry.functions.get(call.name)
        if function is None and call.name in ("i32", "u32") and len(call.positional) == 1:
            of = site.expressions.of(call.positional[0])
            return of if call.name == "i32" else lambda env: of(env) & UNSIGNED
        if function is None:
            raise fail("plugin/no-function", f"no plugin offers the function '{call.name}'", call.span)
        if not simulated(function):
            raise not_simulated(function, call.span)
        return lambda env: asked(function, call, Context(site, env))


def asked(primitive: Primitive, node: Call | Op, cx: Context) -> Any:
    """What a primitive's `simulate` gives. Raises CakeError where it can't, or fails, and MachineError where the text's expressions do."""
    try:
        return primitive.simulate(node, cx)
    except (CakeError, MachineError, Unwritten):
        raise
    except NotImplementedError as error:
        raise not_simulated(primitive, node.span, str(error)) from None
    except Exception as error:
        told = f"{owner(primitive)} failed in 'simulate': {type(error).__name__}: {error}"
        raise fail("plugin/primitive-failed", told, node.span, why=FAULT) from error


def simulated(primitive: Primitive) -> bool:
    """Whether it says what it does to data."""
    return type(primitive).simulate is not Simulated.simulate


def not_simulated(primitive: Primitive, span, why: str | None = None):
    """The finding of what the simulator can't run."""
    fix = "run it on hardware, or by `--on cpu`, which executes its machine code"
    return fail("runtime/not-simulated", f"{owner(primitive)} is not simulated", span, resource=primitive.name, why=why or None, fix=fix)
