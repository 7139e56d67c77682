"""A target architecture, as an architecture package describes it: capabilities and limits are data.

Primitives ask for capabilities, never for an architecture by name; the backend writes what an entry needs
around the kernel's own statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from cake_core.frozen import frozen

if TYPE_CHECKING:
    from cake_core.ptx.builder import Builder, Operand


@frozen
class Limit:
    """A number of the hardware and where it comes from (ISA or guide section, or device, driver and date)."""

    value: int
    source: str


@frozen
class Launch:
    """What the host must know to launch: derived from the roles, buffers and cluster of a kernel.

    `threads` a CTA; `cluster` CTAs a cluster; `shared_bytes` of dynamic shared memory, base alignment slack included;
    `entry_registers` a thread at entry, from the register file, `threads` and `min_ctas`. `min_ctas`: CTAs that must fit
    on a multiprocessor; given (1 at least) wherever a role word acts at role entry, since the assembler takes the
    number of registers at entry as known only then.
    """

    threads: int
    cluster: int
    shared_bytes: int
    entry_registers: int
    min_ctas: int | None = None


@frozen
class ClusterIdentity:
    """Registers or immediates: rank of this CTA in its cluster, the cluster's index in the grid, number of clusters."""

    rank: Operand
    index: Operand
    count: Operand


class Backend(Protocol):
    """What an architecture writes itself."""

    def entry_directives(self, launch: Launch) -> tuple[str, ...]:
        """The performance and cluster directives of an `.entry`, one a line."""

    # Optional: `def leader_lane(self, builder: Builder) -> Reg`, a predicate that holds in one lane of the executing, converged
    # warp, the same one whenever it is asked. Without it the leading lane of a warp is lane 0.

    def cluster_identity(self, builder: Builder, cluster: int) -> ClusterIdentity:
        """Emit the reads of the special registers that place a CTA; without clusters a CTA is a cluster of one."""


@frozen
class Architecture:
    """One target. `target` and `ptx_version` go into the module header, `assembler_target` to the assembler.

    `compute_capability` is what a device must report to run the binary: (major, minor), exact. `portable`: the target has no
    architecture-specific features, so that a device of a higher capability runs the text, compiled by its driver (PTX ISA, .target).
    `limits` has at least: shared_bytes_per_block, registers_per_sm, register_granule, registers_per_thread, threads_per_block,
    named_barriers, cluster_ctas.
    """

    name: str
    target: str
    ptx_version: str
    compute_capability: tuple[int, int]
    capabilities: frozenset[str]
    limits: Mapping[str, Limit]
    backend: Callable[[], Backend]
    summary: str = ""
    portable: bool = False
    source: object = field(default=None, compare=False)  # set by the plugin host: who offers it

    @property
    def assembler_target(self) -> str:
        """What the assembler is asked for: a text for a target with architecture-specific features assembles for it alone."""
        return self.target

    def limit(self, name: str) -> int:
        return self.limits[name].value
