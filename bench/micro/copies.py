"""What texts of copies have in common: a buffer of shared memory filled from S, barriers, waits that end, and the buffer written to D."""

from __future__ import annotations

THREADS = 128
#: Rounds of a wait, of a microsecond each at the most, after which a case goes on with what is there: no case can hang a GPU.
ROUNDS = 20_000
HEAD = ".extern .shared .align 1024 .b8 buffer[];"
#: Bytes behind the buffer, for the barrier.
BAR = 16


def registers(size: int) -> str:
    """Registers, and the addresses of a buffer of so many bytes and of the barrier behind it."""
    return _REGISTERS + f" add.u32 %b, %s, {size};"


_REGISTERS = """.reg .u32 %t, %s, %k, %at, %b, %n, %rank, %far, %far2; .reg .u64 %g, %o, %m, %base; .reg .b32 %v<4>; .reg .pred %p, %q, %first;
mov.u32 %t, %tid.x; mov.u32 %s, buffer; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %first, %t, 0;"""


def fill(size: int, source: str = "S", name: str = "FILL") -> str:
    """The buffer of this CTA from `size` bytes of an array, the CTAs of a cluster behind each other."""
    return f"""mul.wide.u32 %base, %rank, {size}; add.u64 %base, %{source}, %base; mul.lo.u32 %k, %t, 16;
{name}: cvt.u64.u32 %o, %k; add.u64 %g, %base, %o; setp.lt.u32 %p, %k, {size}; @!%p bra {name}D;
ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%g]; add.u32 %at, %s, %k; st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
add.u32 %k, %k, {16 * THREADS}; bra {name}; {name}D:"""


def drain(size: int, to: str = "D", name: str = "DRAIN") -> str:
    return f"""mul.wide.u32 %base, %rank, {size}; add.u64 %base, %{to}, %base; mul.lo.u32 %k, %t, 16;
{name}: cvt.u64.u32 %o, %k; add.u64 %g, %base, %o; setp.lt.u32 %p, %k, {size}; @!%p bra {name}D;
add.u32 %at, %s, %k; ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%at]; st.global.v4.b32 [%g], {{%v0, %v1, %v2, %v3}};
add.u32 %k, %k, {16 * THREADS}; bra {name}; {name}D:"""


def begin(count: int = 1) -> str:
    """The barrier, and what was stored seen by the engines."""
    return f"@%first mbarrier.init.shared::cta.b64 [%b], {count}; fence.mbarrier_init.release.cluster; fence.proxy.async; " + MEET


MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def wait(parity: int = 0, name: str = "WAIT") -> str:
    return f"""mov.u32 %n, 0;
{name}: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], {parity}, 1000; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, {ROUNDS}; @%p bra {name}D; @%q bra {name}; {name}D:"""


def expect(size: int) -> str:
    return f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {size};"
