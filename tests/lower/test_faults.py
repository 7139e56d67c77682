"""A plugin that fails while it lowers is named, with the statement; the user sees no traceback of its code."""

from dataclasses import dataclass, replace

import pytest

from cake_core.diagnostics import CakeError, fail
from cake_core.elaborate import elaborate
from cake_core.lower import lower
from cake_core.primitive import Function, Operation, RoleWord
from cake_core.ptx.builder import PtxTypeError
from cake_core.source import Source
from cake_core.syntax import parse


@dataclass(frozen=True, kw_only=True)
class BadFunction(Function):
    error: Exception | None

    def result(self, call, cx):
        return call.positional[0].type

    def lower(self, call, cx):
        if self.error is not None:
            raise self.error
        return (cx.b.op("add.s32", cx.b.reg("f32"), 1),)


@dataclass(frozen=True, kw_only=True)
class BadOp(Operation):
    error: Exception | None

    def lower(self, op, cx):
        if self.error is not None:
            raise self.error
        cx.b.op("add.s32", cx.b.reg("f32"), 1)


@dataclass(frozen=True, kw_only=True)
class BadWord(RoleWord):
    error: Exception | None

    def lower(self, value, entry_registers, cx):
        if self.error is not None:
            raise self.error
        cx.b.op("add.s32", cx.b.reg("f32"), 1)


BODY = {
    "op": "role r: 4 warps at 0 {\n    bad\n  }",
    "function": "role r: 4 warps at 0 {\n    trace bad(N)\n  }",
    "word": "role r: 4 warps at 0 bad 4 {\n    trace N\n  }",
}


@pytest.mark.parametrize("kind", BODY)
@pytest.mark.parametrize(
    "error, code",
    [
        (KeyError("lost"), "plugin/lowering-failed"),
        (ZeroDivisionError("division by zero"), "plugin/lowering-failed"),
        (RecursionError("too deep"), "plugin/lowering-failed"),
        (NotImplementedError(), "plugin/no-lowering"),
        (PtxTypeError("'add.s32' takes b32"), "plugin/ptx-type"),
        (None, "plugin/ptx-type"),
        (fail("ptx/own-finding", "its own words"), "ptx/own-finding"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else x,
)
def test_the_fault_is_the_plugins(registry, kind, error, code):
    source = "t (dist-t 1.0)"
    extra = {
        "op": {"operations": {**registry.operations, "bad": BadOp(name="bad", error=error, source=source)}},
        "function": {"functions": {**registry.functions, "bad": BadFunction(name="bad", error=error, source=source)}},
        "word": {"role_words": {**registry.role_words, "bad": BadWord(name="bad", error=error, source=source)}},
    }
    chosen = replace(registry, **extra[kind])
    arch = chosen.architectures["sm90"]
    text = "cake 1 derived\nkernel k(N: i32)\n  target sm90\n{\n  launch 1\n  " + BODY[kind] + "\n}\n"
    typed = elaborate(parse(Source("t.cake", text)).kernels[0], chosen, arch, derived=True, overrides={})
    with pytest.raises(CakeError) as caught:
        lower(typed, chosen, arch)
    (d,) = caught.value.diagnostics
    assert d.code == code and d.role == "r"
    assert d.span.line == (6 if kind == "word" else 7)
    if code.startswith("plugin/"):
        assert "'bad' of t (dist-t 1.0)" in d.message
        assert "Traceback" not in d.message


@pytest.mark.parametrize(
    "body, code",
    [("pinned N", "derive/not-constant"), ("trace N / 0", "derive/division-by-zero")],
)
def test_what_lowering_itself_refuses(role, body, code):
    with pytest.raises(CakeError) as error:
        role(body)
    assert error.value.diagnostics[0].code in (code, code.replace("derive/", "type/"))
