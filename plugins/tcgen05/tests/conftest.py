"""Kernels compiled for sm100 with the whole compiler and assembled; nothing is executed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from cake_core.assemble import find_assembler
from cake_core.diagnostics import CakeError
from cake_core.pipeline import build
from cake_core.plugins import load_registry
from cake_core.source import Source

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


@dataclass(frozen=True, slots=True)
class Compiled:
    derived: str
    ptx: str
    advisories: tuple
    usage: object
    instructions: tuple[str, ...] = field(init=False)  # without comments

    def __post_init__(self) -> None:
        lines = (line.strip() for line in self.ptx.splitlines())
        object.__setattr__(self, "instructions", tuple(line for line in lines if line and not line.startswith("//")))

    def all(self, opcode: str) -> list[str]:
        """The instructions whose opcode starts so, registers being called by their class alone."""
        return [anonymous(i) for i in self.instructions if re.match(rf"(@!?%p\d+ )?{re.escape(opcode)}", i)]

    def one(self, opcode: str) -> str:
        found = set(self.all(opcode))
        assert len(found) == 1, found
        return found.pop()

    @property
    def idesc(self) -> int:
        """The instruction descriptor of all products."""
        (operand,) = {i.split(", ")[3] for i in self.all("tcgen05.mma")}
        return int(operand)

    @property
    def enables(self) -> list[str]:
        """The operand `enable-input-d` of each product."""
        return [i.rsplit(", ", 1)[1] for i in self.all("tcgen05.mma")]

    def statements(self, *words: str) -> list[str]:
        """Lines of the derived text that start with one of the words, in order, without their operands."""
        lines = (line.strip() for line in self.derived.splitlines())
        return [w for line in lines for w in words if line.startswith(w)]

    def role(self, name: str) -> list[str]:
        """The statements of a role of the derived text."""
        m = re.search(rf"^  role {name}.*?^  }}$", self.derived, re.M | re.S)
        return [line.strip() for line in m[0].splitlines()]

    def behind(self, name: str, start: str) -> set[str]:
        """What stands right behind each statement of a role that starts so."""
        lines = self.role(name)
        return {b.split(" ")[0] for a, b in zip(lines, lines[1:], strict=False) if a.startswith(start)}

    def count(self, barrier: str) -> int:
        return int(re.search(rf"barrier {barrier}: .* count (\d+)", self.derived)[1])

    def order(self, *opcodes: str) -> list[str]:
        """Which of the opcodes stand in the text, in its order."""
        return [o for i in self.instructions for o in opcodes if re.match(rf"(@!?%p\d+ )?{re.escape(o)}", i)]


def anonymous(instruction: str) -> str:
    return re.sub(r"%([a-z]+)\d+", r"%\1", instruction).rstrip(";")


@pytest.fixture(scope="session")
def registry():
    return load_registry(environ={"CAKE_LOAD_PLUGINS": ""})


@pytest.fixture(scope="session")
def assembler():
    try:
        return find_assembler()
    except CakeError:
        return None


@pytest.fixture(scope="session")
def compile_(registry, assembler):
    """Compile a text; where an assembler is at hand the result has passed it."""

    def run(text: str, name: str = "k.cake", assembled: bool = True) -> Compiled:
        b = build(Source(name, text), registry, "sm100", assembler=assembler if assembled else None)
        advisories = b.assembled.diagnostics if b.assembled else ()
        return Compiled(b.derived_text, b.lowered.ptx, advisories, b.assembled.usage if b.assembled else None)

    return run


@pytest.fixture(scope="session")
def refused(registry):
    """The findings about a text: code, and all of what is said."""

    def run(text: str, **overrides) -> list[tuple[str, str]]:
        with pytest.raises(CakeError) as caught:
            build(Source("k.cake", text), registry, "sm100", overrides)
        return [(d.code, " | ".join(filter(None, (d.message, d.why, d.fix)))) for d in caught.value.diagnostics]

    return run


@pytest.fixture(scope="session")
def one(compile_):
    path = KERNELS / "gemm" / "gemm_sm100.cake"
    return compile_(path.read_text(), path.name)


@pytest.fixture(scope="session")
def pair(compile_):
    path = KERNELS / "gemm" / "gemm_sm100_pair.cake"
    return compile_(path.read_text(), path.name)


def product(
    elem: str = "bf16",
    n: int = 128,
    k: int = 64,
    a: str = "K",
    b: str = "K",
    pair: bool = False,
    words: str = "",
    op: str = "=",
    scaled: bool = False,
    m: int = 128,
    scale: str = "ue8m0",
) -> str:
    """One product of one tile: D [m, n], of a pair [256, n]. `a`, `b`: along which dimension the rows of the factor in shared
    memory run, "K" or "MN"; `a` "tmem": in tensor memory, where a role of its own brings it. `scaled`: with block scales."""
    ctas = 2 if pair else 1
    held, wide, tmem, blocks = n // ctas, n if n <= 128 else 64, a == "tmem", n // 128
    m_at, n_at = ("128 * pair.i", f"{held} * pair.i") if pair else ("0", "0")
    along = lambda rows, is_k: f"{rows}, {k}" if is_k else f"{k}, {rows}"  # noqa: E731
    tile = lambda at, rows, is_k: f"{at} +: {rows}, 0 +: {k}" if is_k else f"0 +: {k}, {at} +: {rows}"  # noqa: E731
    a_k, b_k = a != "MN", b == "K"
    left = "at[v]" if tmem else "a[s]" if a_k else "a[s].T"
    on, first = (" on pair", " on pair[0]") if pair else ("", "")
    of_b = "32, 16" if blocks == 1 else f"{blocks}, 32, 16"
    parts: dict[str, list[str]] = {"params": [], "declare": [], "in": [], "fill": [], "copy": [], "to": ["mma" + first]}
    if scaled:
        parts["params"] = [f"SA: in {scale}[{ctas}, 32, 16]", f"SB: in {scale}[{of_b}]"]
        parts["declare"] = [
            f"shared sa: {scale}[1][32, 16], sb: {scale}[1][{of_b}]",
            f"tmem ta: {scale}[1][128, 4], tb: {scale}[1][{n}, 4]",
        ]
        parts["in"] = ["sa", "sb"]
        parts["fill"] = [
            f"tma.load sa[s] <- SA[{'pair.i' if pair else '0'}, 0 +: 32, 0 +: 16]",
            f"tma.load sb[s] <- SB[{', '.join(f'0 +: {d}' for d in of_b.split(', '))}]",
        ]
        parts["copy"] = ["tcgen05.cp ta[s] <- sa[s]", "tcgen05.cp tb[s] <- sb[s]"]
        words = f"{words} scale_a ta[s] scale_b tb[s]"
    move = ""
    if tmem:
        parts["to"].append("move")
        move = f"""
  role move: 4 warps aligned 4 {{
    frag y: {elem}[{m}, {k}]
    wait ab as s; acquire ap as v
    y = load(a[s])
    tcgen05.st at[v] <- y; tcgen05.wait.st
    commit ap; release ab
  }}"""
    lines = lambda key: "".join(f"\n  {x}" for x in parts[key])  # noqa: E731
    return f"""cake 1
kernel k(A: in {elem}[{along(m * ctas, a_k)}], B: in {elem}[{along(n, b_k)}], {"".join(p + ", " for p in parts["params"])}D: out f32[{m * ctas}, {n}])
  target sm100
  {"cluster m = 2 pair m" if pair else ""}
{{
  shared a: {elem}[1][{along(m, a_k)}], b: {elem}[1][{along(held, b_k)}]{lines("declare")}
  shared d: f32[1][{m}, {wide}]
  tmem acc: f32[1][{m}, {n}]{f", at: {elem}[1][{m}, {k}]" if tmem else ""}
  pipeline ab: 1 {{ {", ".join(["a", "b", *parts["in"]])} }} from load{on} to {", ".join(parts["to"])}
  pipeline accp: 1 {{ acc }} from mma{first} to epi{on}
  {"pipeline ap: 1 { at } from move to mma" if tmem else ""}
  role load: 1 warp{on} {{
    acquire ab as s
    tma.load a[s] <- A[{tile(m_at, m, a_k)}]
    tma.load b[s] <- B[{tile(n_at, held, b_k)}]{lines("fill")}
    commit ab
  }}
  role mma: 1 warp{first} {{
    acquire accp as u; wait ab as s{"; wait ap as v" if tmem else ""}{lines("copy")}
    tcgen05.mma acc[u] {op} {left} @ {"b[s].T" if b_k else "b[s]"} {words}
    release ab{"; release ap" if tmem else ""}; commit accp
  }}{move}
  role epi: 4 warps aligned 4{on} {{
    frag x: f32[{m}, {wide}]
    wait accp as u
    for j in 0 .. {n // wide} unroll {{
      tcgen05.ld x <- acc[u][:, j * {wide} +: {wide}]; tcgen05.wait.ld
      tma.store.wait.read 0; sync epi
      store d[0] <- x
      sync epi
      tma.store D[{m_at} +: {m}, j * {wide} +: {wide}] <- d[0]
    }}
    release accp
    tma.store.wait.read 0
  }}
}}
"""


@pytest.fixture(scope="session")
def text_of():
    return product


# --- values of the address arithmetic ----------------------------------------------------------------------------------

_RUN = {
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "rem": lambda a, b: a % b if b else 0,
    "div": lambda a, b: a // b if b else 0,
    "cvt": lambda a: a,
    "mapa": lambda a, rank: rank << 24 | a & 0xFFFFFF,  # the rank stands above the offset (CUTLASS, peer bit mask)
}


@pytest.fixture(scope="session")
def values():
    """Operands of the instructions of one opcode, as numbers: every line is executed once, in text order, by one thread that knows
    `symbols` (special registers, the base of shared memory); what is loaded is `loaded`, unless it is a parameter."""

    def run(compiled: Compiled, opcode: str, symbols: dict[str, int], loaded: int = 0) -> list[list]:
        known = dict(symbols)
        found = []

        def number(text: str):
            text = text.strip()
            if m := re.fullmatch(r"\[(%\w+)(?:\+(\d+))?\]", text):
                return [known.get(m[1], 0) + int(m[2] or 0)]
            if re.fullmatch(r"-?\d+", text):
                return int(text)
            return known.get(text, 0)

        for line in compiled.instructions:
            m = re.match(r"(?:@!?%p\d+ )?([\w.:]+) (.*);", line)
            if not m:
                continue
            operands = re.split(r", (?![^{\[]*[}\]])", m[2])
            if m[1].startswith(opcode):
                found.append([number(o) for o in operands])
            family = m[1].split(".")[0]
            if family in _RUN and operands[0].startswith("%") and not m[1].startswith(("and.pred", "or.pred")):
                known[operands[0]] = _RUN[family](*(number(o) for o in operands[1:]))
            elif m[1].startswith("ld.shared"):
                known[operands[0]] = loaded
        return found

    return run


# --- what the rows of facts look at -----------------------------------------------------------------------------------------

MX = {"elem": "e4m3", "k": 128, "scaled": True}


@pytest.fixture(scope="session")
def k(compile_, text_of, values, one, pair):
    """The compiled kernels that the rows look at, and a few questions to them."""
    cache: dict[tuple, object] = {}

    def product(**how):
        key = tuple(sorted(how.items()))
        if key not in cache:
            cache[key] = compile_(text_of(**how))
        return cache[key]

    def columns(slots: int, wide: int) -> int:
        text = text_of(n=wide).replace("tmem acc: f32[1]", f"tmem acc: f32[{slots}]").replace("pipeline accp: 1", f"pipeline accp: {slots}")
        return int(compile_(text).one("tcgen05.alloc").rsplit(" ", 1)[1])

    def blocks() -> list[tuple[int, int]]:
        """Of the copies of B's scales: how far descriptor and address are from those of the first."""
        found = [(d, at[0]) for at, d in values(product(**MX, n=256), "tcgen05.cp", {"shared_memory": 0})][1:]
        return [(d - found[0][0], at - found[0][1]) for d, at in found]

    def steps(compiled, operand: int) -> list[int]:
        found = [row[operand] for row in values(compiled, "tcgen05.mma", {"shared_memory": 0}, loaded=0)]
        found = [x[0] if isinstance(x, list) else x for x in found]
        return [x - found[0] for x in found]

    def moved(n: int) -> list[int]:
        """`.num` of each load of a row of n columns; as many registers stand in the vector, and the columns follow each other."""
        found = product(n=n).all("tcgen05.ld")
        nums, start = [], 0
        for i in found:
            m = re.fullmatch(r"tcgen05.ld.sync.aligned.32x32b.x(\d+).b32 \{(.*)\}, \[%r(?:\+(\d+))?\]", i)
            assert len(m[2].split(", ")) == int(m[1]) and int(m[3] or 0) == start
            nums.append(int(m[1]))
            start += nums[-1]
        return nums

    def lane(warp: int) -> int:
        compiled = product()
        first = int(re.search(r"role epi: 4 warps at (\d+)", compiled.derived)[1])
        # the accumulator starts at the address of the allocation, here 0
        return values(compiled, "tcgen05.ld", {"shared_memory": 0, "%tid.x": 32 * (first + warp)})[0][-1][0]

    def tail(compiled) -> list[str]:
        wanted = ("tcgen05.wait.ld", "tcgen05.fence.before", "warp.sync", "mbarrier.arrive")
        found = [s.split(" ")[0] for s in compiled.role("epi") if s.startswith(wanted)]
        return found[-4:]

    def leaves() -> bool:
        """Behind the comment of the role: a comparison of the rank, 0 or 1 in a cluster of two, and a branch to the exit."""
        text = pair.ptx[pair.ptx.index("role mma") :].splitlines()[1:8]
        rank = re.search(r"mov.u32 (%r\d+), %cluster_ctarank", pair.ptx)[1]
        code = "\n".join(text)
        m = re.search(rf"setp.ne.s32 (%p\d+), {rank}, 0;\s+@\1 bra (\S+);", code)
        return m is not None and m[2] == re.search(r"bra (\$exit_\d+)", pair.ptx)[1]

    return SimpleNamespace(
        one=one,
        pair=pair,
        ts=product(a="tmem"),
        mx=product(**MX),
        mx_wide=product(**MX, n=256),
        mx_pair=product(**MX, pair=True),
        blocks=blocks,
        product=product,
        columns=columns,
        steps=steps,
        moved=moved,
        lane=lane,
        tail=tail,
        leaves=leaves,
    )
