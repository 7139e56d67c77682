"""What an Ampere entry needs around the kernel's own statements."""

from __future__ import annotations

from cake_core.architecture import ClusterIdentity, Launch
from cake_core.frozen import frozen
from cake_core.ptx.builder import Builder, Sym


@frozen
class Ampere:
    """Implements `cake_core.architecture.Backend`. There are no clusters: elaboration refuses a kernel that has one."""

    def entry_directives(self, launch: Launch) -> tuple[str, ...]:
        """PTX ISA, performance-tuning directives. `.reqntid` fixes the block, `.minnctapersm` the CTAs that must fit."""
        block = f".reqntid {launch.threads}, 1, 1"
        return (block, f".minnctapersm {launch.min_ctas}") if launch.min_ctas else (block,)

    def cluster_identity(self, builder: Builder, cluster: int) -> ClusterIdentity:
        """PTX ISA, special registers: a CTA is a cluster of one."""
        index, count = (builder.op("mov.u32", Sym(name)) for name in ("%ctaid.x", "%nctaid.x"))
        return ClusterIdentity(0, index, count)
