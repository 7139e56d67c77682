"""The whole extension surface of Cake, on one page.

A plugin is a module named by an entry point in the group `cake`; it implements any of these hooks with
`cake_core.hookimpl`. Hooks return values and take none; they are called once, before any command runs, and must
be cheap and touch no device. The built-in architectures and primitives come through the same door.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from cake_core.architecture import Architecture
from cake_core.ir.nodes import Kernel
from cake_core.plugins.types import Command
from cake_core.primitive import Primitive
from cake_core.ptx.acts import Reread
from cake_core.ptx.emulated import Emulated

PROJECT = "cake"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

#: A plugin module may state `CAKE_API = 1`; another number is a broken plugin.
API_VERSION = 1


@hookspec
def cake_architectures() -> Iterable[Architecture]:
    """Offer target architectures.

    .. versionadded:: 0.1
    """


@hookspec
def cake_primitives() -> Iterable[Primitive]:
    """Offer operations, functions, reductions, layouts, spaces, thread groups, protocols of pipelines and turns, and role words.

    A primitive names the capabilities that it needs, never an architecture.

    .. versionadded:: 0.1
    """


@hookspec
def cake_rereads() -> Iterable[Reread]:
    """Say what instructions do to barriers, from the PTX ISA and apart from lowering: machine code is read back with it.

    A kernel with an opcode that nobody reads is not read back.

    .. versionadded:: 0.1
    """


@hookspec
def cake_emulates() -> Iterable[Emulated]:
    """Say how instructions are executed without a GPU, from the PTX ISA and apart from lowering.

    A kernel with an opcode of which nobody says so is not emulated.

    .. versionadded:: 0.1
    """


@hookspec
def cake_commands() -> Iterable[Command]:
    """Offer subcommands of `cake`.

    .. versionadded:: 0.1
    """


@hookspec
def cake_after_pass(name: str, kernel: Kernel) -> None:
    """Observe the kernel after a pass: `parse`, `elaborate`, `derive`. What it returns is ignored.

    .. versionadded:: 0.1
    """
