"""What a Hopper entry needs around the kernel's own statements."""

from __future__ import annotations

from cake_core.architecture import ClusterIdentity, Launch
from cake_core.frozen import frozen
from cake_core.ptx.builder import Builder, Reg, Sym


@frozen
class Hopper:
    """Implements `cake_core.architecture.Backend`."""

    def entry_directives(self, launch: Launch) -> tuple[str, ...]:
        """PTX ISA, performance-tuning directives and cluster dimension directives.

        `.reqntid` fixes the block. `.minnctapersm` fixes the number of registers at entry: without it ptxas 13.5 ignores
        setmaxnreg (C7508), also for a block of known size. It is not written unasked, because it lets ptxas spend
        registers that a kernel without setmaxnreg may rather want as occupancy (CUDA C++ Programming Guide, launch bounds).
        `.explicitcluster` makes a launch without cluster dimensions an error instead of a kernel
        that waits for CTAs that do not exist.
        """
        directives = [f".reqntid {launch.threads}, 1, 1"]
        if launch.min_ctas:
            directives.append(f".minnctapersm {launch.min_ctas}")
        if launch.cluster > 1:
            directives += [".explicitcluster", f".reqnctapercluster {launch.cluster}, 1, 1"]
        return tuple(directives)

    def leader_lane(self, builder: Builder) -> Reg:
        """PTX ISA, elect.sync: of the same members it elects the same lane every time. Where a branch depends on it ptxas knows
        that one lane goes on; behind a comparison with the lane's number it writes a loop over the active lanes around
        every bulk copy (ptxas 13.5)."""
        leads = builder.reg("pred")
        builder.emit("elect.sync", Sym(f"_|{leads}"), -1)
        return leads

    def cluster_identity(self, builder: Builder, cluster: int) -> ClusterIdentity:
        """PTX ISA, special registers. Clusters lie along x, so the rank in the cluster is the coordinate on its axis."""
        if cluster == 1:
            return ClusterIdentity(0, _read(builder, "%ctaid.x"), _read(builder, "%nctaid.x"))
        return ClusterIdentity(
            _read(builder, "%cluster_ctarank"),
            _read(builder, "%clusterid.x"),
            _read(builder, "%nclusterid.x"),
        )


def _read(builder: Builder, register: str):
    return builder.op("mov.u32", Sym(register))
