"""Packs that mean harm, one a function: each is written into a folder, read and judged in a process of its own that is measured.

python tests/rules/hostile.py [NAME...]      a line of JSON an attack: what became of it, seconds, MiB
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PACK = 'schema: 1\nname: acme\nnamespace: acme\nversion: "0.1.0"\nsuites: {default: [{status: stable}]}\n'
HEAD = """schema: 1
id: acme/%s
title: A rule
kind: safety
level: error
status: stable
precision: proof
since: "0.1"
owner: someone
why: It is.
"""
MESSAGE = "message: it is wrong\n"
KERNEL = "match: {k: {kernel: {}}}\n"
RELATION = HEAD + KERNEL + MESSAGE

ATTACKS: dict[str, Callable[[Path], None]] = {}


def attack(make: Callable[[], str | dict[str, str]]) -> Callable:
    """One rule's text, or files by name, as an attack."""

    def write(folder: Path) -> None:
        made = make()
        files = made if isinstance(made, dict) else {"rules/one/rule.yaml": made.replace("%s", "one", 1)}
        (folder / "pack.yaml").write_text(PACK)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    ATTACKS[make.__name__] = write
    return make


def on_disk(make: Callable[[Path], None]) -> Callable:
    """What no text says: special files, links."""

    def write(folder: Path) -> None:
        (folder / "pack.yaml").write_text(PACK)
        (folder / "rules" / "one").mkdir(parents=True)
        make(folder)

    ATTACKS[make.__name__] = write
    return make


# --- YAML --------------------------------------------------------------------------------------------------------


@attack
def laughs() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join(['*' + a] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return "\n".join(lines)


@attack
def nested_lists() -> str:
    return RELATION + "require: " + "[" * 30000


@attack
def nested_maps() -> str:
    return RELATION + "require: " + "{a: " * 12000


@attack
def nested_blocks() -> str:
    return RELATION + "require:\n" + "".join(f"{' ' * n}- \n" for n in range(1, 300))


@attack
def open_keys() -> str:
    return "? " * 30000


@attack
def megabyte() -> str:
    return RELATION + f"require: {'x' * (4 << 20)}\n"


@attack
def long_key() -> str:
    return RELATION + f"require: true\n{'k' * 60000}: 1\n"


@attack
def unknown_keys() -> str:
    return RELATION + "require: true\n" + "".join(f"ownr{n}: x\n" for n in range(1900))


@attack
def long_text() -> str:
    return RELATION + f"require: {'k.clusters + ' * 4500}1 > 0\n"


@attack
def nul() -> str:
    return RELATION + "require: true\x00\n"


@attack
def not_utf8() -> dict:
    return {"rules/one/rule.yaml": b"schema: 1\nid: \xff\xfe\n"}


@attack
def lone_surrogate() -> dict:
    return {"rules/one/rule.yaml": b'schema: 1\nid: "\\ud800"\n'}


@attack
def bell() -> str:
    return RELATION.replace("It is.", '"It\\u0007 \\x1b[31m is."') + "require: true\n"


# --- expressions -------------------------------------------------------------------------------------------------

DOUBLED = "".join(f"  d{n}: {{of: {{k: kernel}}, as: d{n - 1}(k) and d{n - 1}(k)}}\n" for n in range(1, 60))


@attack
def doubled_facts() -> str:
    return RELATION + "define:\n  d0: {of: {k: kernel}, as: k.cluster > 0}\n" + DOUBLED + "require: d59(k)\n"


@attack
def doubled_predicates() -> str:
    return RELATION + "define:\n  d0: {of: {k: kernel}, as: deadlock_free(k)}\n" + DOUBLED + "require: d59(k)\n"


@attack
def doubled_conditions() -> str:
    more = "".join(f"  d{n}: {{of: {{x: bool}}, as: d{n - 1}(x and x)}}\n" for n in range(1, 60))
    base = HEAD + "match: {a: {loop: {}}}\n" + MESSAGE
    return base + "define:\n  d0: {of: {x: bool}, as: x}\n" + more + "require: d59(a.hi > 3)\n"


@attack
def doubled_arithmetic() -> str:
    more = "".join(f'  d{n}: {{of: {{x: bool}}, as: "d{n - 1}((x ? 1 : 0) < (x ? 2 : 1))"}}\n' for n in range(1, 40))
    base = HEAD + "match: {a: {loop: {}}}\n" + MESSAGE
    return base + "define:\n  d0: {of: {x: bool}, as: x}\n" + more + "require: d39(a.hi > 3)\n"


@attack
def doubled_terms() -> str:
    more = "".join(f"  d{n}: {{of: {{a: loop}}, as: d{n - 1}(a) + d{n - 1}(a)}}\n" for n in range(1, 60))
    return HEAD + "match: {a: {loop: {}}}\n" + MESSAGE + "define:\n  d0: {of: {a: loop}, as: a.hi}\n" + more + "require: d59(a) > 0\n"


@attack
def doubled_texts() -> str:
    more = "".join(f'  d{n}: {{of: {{x: text}}, as: "d{n - 1}(text(x, x))"}}\n' for n in range(1, 60))
    return RELATION + "define:\n  d0: {of: {x: text}, as: x}\n" + more + "require: d59('ab') == 'c'\n"


@attack
def squared_numbers() -> str:
    more = "".join(f"  d{n}: {{of: {{x: int}}, as: d{n - 1}(x * x)}}\n" for n in range(1, 60))
    return RELATION + "define:\n  d0: {of: {x: int}, as: x}\n" + more + "require: d59(7) > 0\n"


@attack
def nested_choices() -> str:
    text = "1 < 2"
    for _ in range(25):
        text = f"({text} ? 1 : 0) < 1"
    return RELATION + f'require: "{text}"\n'


@attack
def nested_quantifiers() -> str:
    inner = " ".join(f"forall {v} in event:" for v in ("a", "b", "c", "d", "e", "f"))
    return RELATION + f'require: "{inner} a.order <= b.order or true"\n'


@attack
def message_that_counts() -> str:
    count = "{count(c in event where (exists d in event: c.order < d.order and d.order > 100000))}"
    return HEAD + "match: {a: {event: {}}, b: {event: {}}}\n" + f'message: "{count * 40}"\n' + "require: a.order < 0 or b.order < 0\n"


@attack
def clauses() -> str:
    parts = " and ".join(f"(deadlock_free(k) and drained(k) or may_hold(k) and {n} > 0)" for n in range(60))
    return RELATION + f"require: {parts}\n"


@attack
def alternatives() -> str:
    parts = " or ".join("(deadlock_free(k) and drained(k))" for _ in range(60))
    return RELATION + f"require: {parts}\n"


# --- matches -----------------------------------------------------------------------------------------------------


@attack
def six_events() -> str:
    return (
        HEAD
        + "match: {a: {event: {}}, b: {event: {}}, c: {event: {}}, d: {event: {}}, e: {event: {}}, f: {event: {}}}\n"
        + MESSAGE
        + "require: a.order >= 0\n"
    )


@attack
def six_events_and_nothing() -> str:
    return (
        HEAD
        + "match: {a: {event: {}}, b: {event: {}}, c: {event: {}}, d: {event: {}}, e: {event: {}}, f: {event: {part: before, op: none}}}\n"
        + MESSAGE
        + "require: a.order >= 0\n"
    )


@attack
def forty_variables() -> str:
    return HEAD + f"match: {{{', '.join(f'v{n}: {{event: {{}}}}' for n in range(40))}}}\n" + MESSAGE + "require: v0.order >= 0\n"


@attack
def solver() -> str:
    hard = "a.hi * a.hi * a.hi + b.hi * b.hi * b.hi != c.hi * c.hi * c.hi + 3"
    return HEAD + "match: {a: {loop: {}}, b: {loop: {}}, c: {loop: {}}}\n" + MESSAGE + f"require: {hard}\nbudget: {{rlimit: 10000000}}\n"


@attack
def solver_without_end() -> str:
    return RELATION + "require: true\nbudget: {rlimit: 100000000000}\n"


@attack
def many_patterns() -> str:
    one = "{event: {part: role}}"
    return HEAD + f"from: {{event: {{}}}}\nto: {{event: {{}}}}\nmust_pass: [{', '.join([one] * 700)}]\n" + MESSAGE


@attack
def many_values() -> str:
    return HEAD + f"match: {{a: {{event: {{op: [{', '.join(f'w{n}' for n in range(3500))}]}}}}}}\n" + MESSAGE + "require: true\n"


# --- automata ----------------------------------------------------------------------------------------------------

PROTOCOL = HEAD + MESSAGE + "shape: protocol\nresource: {kernel: {}}\nevents: {a: {event: {}}, b: {wait: {}}}\n"


@attack
def plus_of_plus() -> str:
    return PROTOCOL + f"automaton: a{'+' * 200}\n"


@attack
def nested_plus() -> str:
    text = "a"
    for _ in range(28):
        text = f"({text} b)+"
    return PROTOCOL + f"automaton: {text}\n"


@attack
def nth_from_the_end() -> str:
    return PROTOCOL + f"automaton: (a|b)* a {'(a|b) ' * 24}\n"


@attack
def optional_chain() -> str:
    return PROTOCOL + f"automaton: {'a? ' * 3000}\n"


@attack
def long_choice() -> str:
    return PROTOCOL + f"automaton: {' | '.join(['a'] * 5000)}\n"


@attack
def stars_in_stars() -> str:
    text = "a"
    for n in range(28):
        text = f"({text} | {'ab'[n % 2]}*)* a?"
    return PROTOCOL + f"automaton: {text}\n"


@attack
def stars_within_the_limit() -> str:
    text = "a"
    for n in range(14):
        text = f"({text} | {'ab'[n % 2]}*)* a?"
    return PROTOCOL + f"automaton: {text}\n"


@attack
def optional_chain_within_the_limit() -> str:
    return PROTOCOL + f"automaton: {'a? b? ' * 49}\n"


@attack
def plus_within_the_limit() -> str:
    text = "a"
    for _ in range(5):
        text = f"({text} b)+"
    return PROTOCOL + f"automaton: {text}\n"


# --- packs -------------------------------------------------------------------------------------------------------


@attack
def thousands_of_rules() -> dict:
    return {f"rules/r{n}/rule.yaml": RELATION % f"r{n}" + "require: true\n" for n in range(3000)}


@attack
def thousands_of_broken_rules() -> dict:
    return {f"rules/r{n}/rule.yaml": RELATION % f"r{n}" + "require: true\n" + "".join(f"x{i}: x\n" for i in range(200)) for n in range(400)}


@attack
def large_rules() -> dict:
    return {f"rules/r{n}/rule.yaml": RELATION % f"r{n}" + "require: true\n" + "tags: [" + "x, " * 3900 + "x]\n" for n in range(300)}


@attack
def many_greedy_rules() -> dict:
    text = HEAD + "match: {a: {event: {}}, b: {event: {}}, c: {event: {}}}\n" + MESSAGE + "require: a.order + b.order >= c.order - 10000\n"
    return {f"rules/r{n}/rule.yaml": text % f"r{n}" for n in range(200)}


@on_disk
def fifo(folder: Path) -> None:
    os.mkfifo(folder / "rules" / "one" / "rule.yaml")


@on_disk
def device(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").symlink_to("/dev/zero")


@on_disk
def endless(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").symlink_to("/proc/self/maps")


@on_disk
def outside(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").symlink_to("/etc/passwd")


@on_disk
def link_to_itself(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").symlink_to("rule.yaml")


@on_disk
def folder_in_itself(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").write_text(RELATION % "one" + "require: true\n")
    (folder / "rules" / "two").symlink_to(folder / "rules")


@on_disk
def folder_as_file(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").mkdir()


@on_disk
def hole(folder: Path) -> None:
    with open(folder / "rules" / "one" / "rule.yaml", "wb") as f:
        f.truncate(1 << 40)


@on_disk
def text_as_fifo(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").write_text(RELATION.replace("%s", "one", 1) + "require: true\n")
    os.mkfifo(folder / "rules" / "one" / "bad_one.cake")


@on_disk
def text_as_hole(folder: Path) -> None:
    (folder / "rules" / "one" / "rule.yaml").write_text(RELATION.replace("%s", "one", 1) + "require: true\n")
    with open(folder / "rules" / "one" / "good_one.cake", "wb") as f:
        f.truncate(1 << 40)


@on_disk
def pack_as_fifo(folder: Path) -> None:
    (folder / "pack.yaml").unlink()
    os.mkfifo(folder / "pack.yaml")


# --- running them ------------------------------------------------------------------------------------------------


def suffered(folder: Path, rows) -> dict:
    """What becomes of the pack in a folder: `refused` by whoever reads it, `told` with an error of the rules, or `silent`."""
    from cake_core.diagnostics import CakeError, Severity, render
    from cake_core.rules import judge, load_pack, selected

    try:
        pack = load_pack(folder)
    except CakeError as error:
        assert render(error.diagnostics, (), "text") and render(error.diagnostics, (), "json")
        return {"end": "refused", "codes": sorted({d.code for d in error.diagnostics}), "said": error.diagnostics[0].message[:200]}
    found = [v.finding for v in judge(selected((pack,)), rows) if v.finding is not None]
    assert len(render(found, (), "text")) < 1 << 20
    codes = sorted({d.code for d in found if d.severity is Severity.ERROR})
    return {"end": "told" if codes else "silent", "codes": codes, "said": found[0].message[:200] if found else ""}


def rows_of_gemm():
    from cake_core.facts import facts_of, rows_of
    from cake_core.pipeline import frontend
    from cake_core.plugins import load_registry
    from cake_core.source import Source

    file = Path(__file__).resolve().parents[2] / "kernels" / "gemm" / "gemm_sm90.cake"
    front = frontend(Source(file.name, file.read_text(encoding="utf-8")), registry := load_registry())
    return rows_of(facts_of(front.typed, registry, front.arch), front.arch, registry)


#: CPU seconds that `reference` takes on a machine that does nothing else, and from which on what an attack takes is held against it: where others
#: share caches and cores, the same work takes longer.
REFERENCE, LONG = 0.05, 2.0


def reference() -> float:
    """CPU seconds of a fixed piece of work, of the kind that rules cost: small objects, and tables of them."""
    start = time.process_time()
    table: dict[int, int] = {}
    for n in range(400_000):
        table[n & 1023] = (n, table.get(n >> 3 & 1023))[0]
    return time.process_time() - start


def main(names: list[str]) -> None:
    import z3  # noqa: F401  (what every proof has loaded)

    rows = rows_of_gemm()
    for name in names or ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            ATTACKS[name](Path(folder))
            read, write = os.pipe()
            start = time.monotonic()
            if not (pid := os.fork()):
                import signal

                signal.alarm(60)
                try:
                    end = suffered(Path(folder), rows)
                except BaseException as error:
                    end = {"end": "crashed", "codes": [], "said": f"{type(error).__name__}: {error}"[:300]}
                os.write(write, json.dumps(end).encode())
                os._exit(0)
            os.close(write)
            data = b""
            while piece := os.read(read, 1 << 16):
                data += piece
            os.close(read)
            _, _, used = os.wait4(pid, 0)
            end = json.loads(data) if data else {"end": "killed", "codes": [], "said": ""}
            seconds = used.ru_utime + used.ru_stime
            if seconds > LONG:
                seconds *= min(REFERENCE / reference(), 1)
            print(
                json.dumps(
                    {"attack": name, **end, "seconds": round(seconds, 2), "wall": round(time.monotonic() - start, 2), "mib": used.ru_maxrss // 1024}
                ),
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
