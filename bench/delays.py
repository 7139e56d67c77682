"""Waits put into a kernel's PTX, drawn from a seed: another order of what its roles do, with nothing else changed.

Statements are found by the comments that lowering writes in front of each. A wait is `nanosleep` (PTX ISA, nanosleep: up to twice the time
that is given, at most 1 ms), as long as place, warp and CTA say. None stands between the products of the tensor core and their commit, where
the assembler would give up asynchrony.

Seed 0 changes nothing. Others draw one of three manners: some places, a single role at all its places, every place by warp and CTA.
"""

from __future__ import annotations

from random import Random

#: Statements in front of which a wait may stand, by how their names begin.
PLACES = ("mbarrier.", "tma.", "bar.", "cluster.", "cta.", "cp.async", "bulk.", "store", "load", "ldmatrix", "fence.", "wgmma.fence", "warp.sync")
ROLE = "  // role "
NAP = """  {{
  .reg .b32 %nap<2>;
  mov.u32 %nap0, %tid.x;
  shr.u32 %nap0, %nap0, 5;
  mad.lo.u32 %nap0, %nap0, 2654435761, {place};
  mov.u32 %nap1, %ctaid.x;
  mad.lo.u32 %nap0, %nap1, 2246822519, %nap0;
  shr.u32 %nap0, %nap0, 16;
  and.b32 %nap0, %nap0, {mask};
  add.u32 %nap0, %nap0, {least};
  nanosleep.u32 %nap0;
  }}"""


def delayed(ptx: str, seed: int) -> str:
    """The text with waits of a seed in it."""
    if not seed:
        return ptx
    lines = ptx.split("\n")
    draw = Random(seed)
    manner = ("places", "role", "warps")[(seed - 1) % 3]
    roles = sorted({_role(x) for x in lines if x.startswith(ROLE)})
    slow = draw.choice(roles) if roles else None
    out, role = [], None
    for line in lines:
        if line.startswith(ROLE):
            role = _role(line)
        elif line.startswith("  // ") and line[5:].startswith(PLACES) and (nap := _nap(draw, manner, role == slow)):
            out.append(nap)
        out.append(line)
    return "\n".join(out)


def _role(line: str) -> str:
    """Name, and instance where a role has several."""
    name, _, rest = line[len(ROLE) :].partition(":")
    return name + rest.partition("instance")[2]


def _nap(draw: Random, manner: str, slow: bool) -> str | None:
    place, chance, scale = draw.getrandbits(31), draw.random(), draw.choice((255, 1023, 8191, 32767))
    match manner:
        case "places":
            return NAP.format(place=place, mask=scale // 4, least=scale) if chance < 0.4 else None
        case "role":
            return NAP.format(place=place, mask=1023, least=3000) if slow else None
        case _:
            return NAP.format(place=place, mask=8191, least=0)
