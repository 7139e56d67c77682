"""The `let`s of a kernel's body in the derived form: what the launch is made of first, and what is read from memory right in front of
the roles, behind everything that needs no memory."""

from __future__ import annotations

from dataclasses import replace

from cake_core.derive.body import Body, Frame
from cake_core.derive.distribution import Fragments
from cake_core.derive.dynamic import waits_for_grids
from cake_core.derive.held import HeldSlots
from cake_core.diagnostics import Sink
from cake_core.effects import Access
from cake_core.ir.nodes import Binding, Block, Int, Kernel, Let, Role, Words
from cake_core.ir.places import names
from cake_core.primitive.asking import effects_of


def known_at_launch(kernel: Kernel, registry) -> Block:
    """The `let`s of parameters alone."""
    return _lets(kernel, _read(kernel, registry), of_memory=False)


def reads(kernel: Kernel, frame: Frame) -> Block:
    """The `let`s that are read from memory, or made of such, derived. Every thread makes them for itself. Where roles wait for the
    grids in front, which may write what is read, so does every thread here."""
    lets = _lets(kernel, _read(kernel, frame.registry), of_memory=True)
    if not lets:
        return ()
    nobody = Role("", None, Int(1), "warp", Words(), ())  # all threads have all of a value: no role's fragments are here
    body = Body(frame, nobody, 1, 1, Fragments(frame.registry, {}, {}), {}, HeldSlots(nobody, {}, Sink(), frozenset()))
    return (*waits_for_grids(kernel, frame.registry, frame.arch, lets[0].span), *body.block(lets))


def _read(kernel: Kernel, registry) -> set[str]:
    """Names of the kernel's body whose values are read from memory, or made of such."""
    found: set[str] = set()
    for b in (b for s in kernel.body if isinstance(s, Let) for b in s.bindings):
        effects = effects_of(Let((b,)), registry)
        if any(isinstance(e, Access) for e in effects) or any(n.id in found for n in names(b.value)):
            found.add(b.name)
    return found


def _lets(kernel: Kernel, read: set[str], of_memory: bool) -> tuple[Let, ...]:
    wanted = lambda b: (b.name in read) is of_memory
    kept: list[tuple[Let, tuple[Binding, ...]]] = [(s, tuple(filter(wanted, s.bindings))) for s in kernel.body if isinstance(s, Let)]
    return tuple(replace(s, bindings=bindings) for s, bindings in kept if bindings)
