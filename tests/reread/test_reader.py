"""Reading PTX text: every statement of the zoo, every form of operand, and what is no statement."""

from __future__ import annotations

import re
import struct

import pytest
from read_back_zoo import ZOO, lowered, targets

from cake_core.ptx.builder import Addr, Builder, Vec
from cake_core.ptx.module import EntryParam, Module
from cake_core.ptx.reader import At, Group, Mark, Pair, PtxSyntaxError, Statement, Sum, operands_of, read


def text_of(operand) -> str:
    """An operand as PTX, written from the grammar of the ISA and from no printer of the compiler."""
    match operand:
        case At(base, offset, coordinates):
            inside = f"{base}+{offset}" if offset else str(base)
            return f"[{inside}, {{{', '.join(map(text_of, coordinates))}}}]" if coordinates else f"[{inside}]"
        case Group(items):
            return "{" + ", ".join(map(text_of, items)) + "}"
        case Pair(a, b):
            return f"{text_of(a)}|{text_of(b)}"
        case float():
            return "0f" + struct.pack(">f", operand).hex().upper()
    return str(operand)


@pytest.mark.parametrize(("name", "arch"), [(n, targets(n)[-1]) for n in ZOO])
def test_every_statement_of_the_zoo_is_read_and_written_again(name, arch):
    written, facts, _ = lowered(name, arch)
    lines = written.ptx.splitlines()
    entry = read(written.ptx)
    assert entry.name == name or entry.name in written.ptx
    assert entry.threads == 32 * facts.warps
    assert [p for p, _ in entry.params] == re.findall(r"\.param .*?([\w$]+)(?:\[128\])?,?$", written.ptx, re.MULTILINE)
    for item in entry.body:
        line = lines[item.line - 1].strip()
        if isinstance(item, Mark):
            assert line == f"{item.name}:"
            continue
        guard = f"@{'!' if item.negated else ''}{item.guard} " if item.guard else ""
        operands = ", ".join(map(text_of, item.operands))
        assert line == f"{guard}{item.opcode}{' ' if operands else ''}{operands};"
    body = [n for n, line in enumerate(lines, 1) if line.endswith((";", ":")) and not line.lstrip().startswith((".", "//"))]
    assert [item.line for item in entry.body] == body


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("", ()),
        ("%r1, -4, 0x10", ("%r1", -4, 16)),
        ("[%r1+8], [sym], [64]", (At("%r1", 8), At("sym"), At(64))),
        ("[%r1+-8]", (At("%r1", -8),)),
        ("[%d0, {%r1, 0}], [%r2]", (At("%d0", 0, ("%r1", 0)), At("%r2"))),
        ("{%f0, %f1}, _", (Group(("%f0", "%f1")), "_")),
        ("_|%p4, -1", (Pair("_", "%p4"), -1)),
        ("%p1|%p2, 0f3F800000, 0d3FF0000000000000", (Pair("%p1", "%p2"), 1.0, 1.0)),
        ("%tid.x, WARP_SZ, !%p1", ("%tid.x", "WARP_SZ", "!%p1")),
        ("[sym + 8], [%r1 + -16], [%rd1-4]", (At("sym", 8), At("%r1", -16), At("%rd1", -4))),
        ("sym+16, %r1", (Sum("sym", 16), "%r1")),
        ("[32+32], [64 + -8]", (At(32, 32), At(64, -8))),
        ("0b101, 017, 0xFFU, 10U, - 5, 1.5, -2.5e-3", (5, 15, 255, 10, -5, 1.5, -0.0025)),
        ("{%r1, _}, {a|%p, {1}}", (Group(("%r1", "_")), Group((Pair("a", "%p"), Group((1,)))))),
    ],
)
def test_operands(text, operands):
    assert operands_of(text) == operands


@pytest.mark.parametrize("text", ["%r1, ?", "[%r1", "{%r1", "%r1 %r2 ]", "[{%r1}]", "%r1 %r2", "%r1 4", "%p|", "["])
def test_what_is_no_operand(text):
    with pytest.raises(ValueError, match="operand|end|comma|behind"):
        operands_of(text)


def test_what_a_statement_names():
    s = Statement(1, "wgmma.mma_async", "{%f0, %f1}, %d0, %d1, %p0, 1", "%p9", True)
    assert s.results == ("%f0", "%f1")
    assert s.registers == ("%f0", "%f1", "%d0", "%d1", "%p0")
    assert s.outside == ("%d0", "%d1", "%p0")
    assert s.words == ("wgmma", "mma_async")


ENTRY = ".visible .entry k(\n  .param .b32 arg_N\n)\n.reqntid 64, 2, 1\n{\n  .reg .b32 %r<2>;\n"


def test_a_module_of_the_builder():
    b = Builder()
    x = b.mov(7)
    b.emit("st.shared.v2.b32", Addr(x, 4), Vec((x, 1.5)), guard=b.compare("==", x, 3), negate=True)
    b.place("$end_0")
    b.comment("nothing; at all")
    b.emit("ret")
    text, _ = Module("8.6", "sm_90a", "k", [EntryParam("arg_N", ".b32 arg_N")], (".reqntid 96, 1, 1",), "shared_memory", 1024, b).print()
    entry = read(text)
    assert (entry.name, entry.params, entry.symbols, entry.threads) == ("k", (("arg_N", "b32"),), {"shared_memory": 1024}, 96)
    move, compare, store, label, end = entry.body
    assert (move.opcode, move.operands) == ("mov.b32", ("%r0", 7)) and compare.opcode == "setp.eq.s32"
    assert (store.guard, store.negated, store.operands) == ("%p0", True, (At("%r0", 4), Group(("%r0", 1.5))))
    assert label.name == "$end_0" and end.opcode == "ret"


def test_threads_of_several_dimensions():
    assert read(ENTRY + "  ret;\n}\n").threads == 128


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (ENTRY + "  mov.b32 %r0, 1\n}\n", 7, "is no statement"),
        (ENTRY + "  mov.b32 %r0, 1\n  ret;\n}\n", 7, "no comma in front of 'ret'"),
        (ENTRY + "{\n", 8, "'' is no statement"),
        (ENTRY + "  ret;\n}\n.visible .entry other() { ret; }\n", 9, "a second entry: of 'k', 'other' one is chosen by its name"),
        (ENTRY + "  .entry .b32 p;\n}\n", 7, "'.entry' is not read in a body"),
        (ENTRY + "  .reg .v8 .b32 %v;\n}\n", 7, "registers '.v8"),
        (".weird x;\n" + ENTRY + "ret;\n}\n", 1, "'.weird' is not read in a module"),
        ("hello\n", 1, "'hello' is no directive"),
        (".entry k;\n", 1, "there is no entry"),
        ("// nothing\n", 1, "there is no entry"),
    ],
)
def test_what_is_no_module(text, line, why):
    with pytest.raises(PtxSyntaxError, match=why) as raised:
        read(text)
    assert raised.value.line == line
