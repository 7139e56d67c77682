"""What statements share that count in the barrier of a pipeline slot, or reach another CTA of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.diagnostics import fail
from cake_core.ir.nodes import Expr, Int, Op
from cake_core.ir.places import root

if TYPE_CHECKING:
    from cake_core.primitive.contexts import CheckContext, DeriveContext, HandOff

#: Why a copy must lie in a pipeline.
BY_BYTES = "its bytes complete the full barrier of a pipeline slot that this role has acquired"


def handed(op: Op, place: Expr, cx: DeriveContext, when: str, fix: str, why: str = BY_BYTES) -> HandOff:
    """The hand-off that tells `when` what `op` does with a place is over. Raises CakeError where there is none."""
    if (found := cx.hand_off(place)) is None:
        raise fail("derive/no-hand-off", f"nothing tells when {when}", op.span, resource=root(place).id, why=why, fix=fix)
    return found


def check_rank(rank: Expr | None, cx: CheckContext, code: str) -> None:
    """A CTA of the cluster, as far as the text says. Raises CakeError with `code`."""
    if isinstance(rank, Int) and not 0 <= rank.value < cx.cluster_size:
        raise fail(code, f"no CTA of rank {rank.value} in a cluster of {cx.cluster_size}", rank.span)
