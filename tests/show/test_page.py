"""The page as its text: one file that asks for nothing, whole HTML, everything that is known on it, findings at their lines, colours that can be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from cake_core.diagnostics import Diagnostic, Related, Severity, Witness
from cake_core.show import Picture, page
from cake_core.source import Source, Span
from cake_core.trace import Kind

VOID = {"meta", "input", "br", "hr", "img", "link"}
#: What belongs to SVG may close itself.
CLOSED = {"path"}
NAMES = ("gemm/gemm_sm90", "gemm/gemm_sm100_nvf4", "attention/attn_fwd_sm90", "moe/moe_grouped_sm90", "softmax/softmax_cluster")


@dataclass
class Node:
    tag: str
    attributes: dict
    children: list = field(default_factory=list)
    text: str = ""

    def all(self, tag: str | None = None, cls: str | None = None):
        for c in self.children:
            if (tag is None or c.tag == tag) and (cls is None or cls in c.attributes.get("class", "").split()):
                yield c
            yield from c.all(tag, cls)

    @property
    def said(self) -> str:
        return self.text + "".join(c.said for c in self.children)


class Reader(HTMLParser):
    """Builds the tree; an element that is not closed, or closed by another's tag, is an error."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack = [Node("root", {})]

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute of <{tag}> stands twice"
        node = Node(tag, {k: v or "" for k, v in attrs})
        self.stack[-1].children.append(node)
        if tag not in VOID:
            self.stack.append(node)

    def handle_startendtag(self, tag, attrs):
        assert tag in CLOSED, f"<{tag}/> closes nothing in HTML"
        self.stack[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop().tag == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.stack[-1].children.append(Node("", {}, text=data))


def read(html: str) -> Node:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.stack) == 1, f"<{reader.stack[-1].tag}> is not closed"
    return reader.stack[0]


@pytest.fixture(scope="module")
def pages(zoo):
    made = {}

    def get(name: str):
        if name not in made:
            made[name] = read(page(zoo(name)))
        return made[name]

    return get


@pytest.mark.parametrize("name", NAMES)
def test_it_is_one_whole_file_that_asks_for_nothing(zoo, pages, name):
    html, tree = page(zoo(name)), pages(name)
    assert html == page(zoo(name)), "the same picture gives the same bytes"
    assert not re.search(
        r"https?:|//[a-z]|url\(|@import|\bsrc=|<link|<iframe|<img|fetch\(|XMLHttp|import\(",
        re.sub(r"<ol class=\"text\".*?</ol>", "", html, flags=re.DOTALL),
    )
    ids = [n.attributes["id"] for n in tree.all() if "id" in n.attributes]
    assert len(ids) == len(set(ids))
    links = [n.attributes["href"] for n in tree.all("a")]
    assert all(h.startswith("#") and h[1:] in ids for h in links) and len(links) > 20
    (policy,) = [n for n in tree.all("meta") if n.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy.attributes["content"].startswith("default-src 'none'")
    assert len(html) < 900_000


@pytest.mark.parametrize("name", NAMES)
def test_every_event_is_on_it(zoo, pages, name):
    tree, trace = pages(name), zoo(name).timeline.trace
    drawn = {n.attributes["id"]: n for n in tree.all("b", "s")}
    assert len(drawn) == len(trace.slices)
    for n, s in enumerate(trace.slices):
        e = drawn[f"e{n}"]
        style = dict(p.split(":") for p in e.attributes["style"].split(";"))
        assert (float(style["--a"]), float(style["--d"]), float(style.get("--w", 0))) == (s.start, s.end - s.start, s.waited)
        assert s.name in e.attributes["title"] and e.said.strip() in s.name
        assert e.attributes.get("data-l") == (str(s.span.line) if s.span is not None and s.span.line else None)
    lanes = [n.attributes["aria-label"] for n in tree.all("div", "track")]
    assert [label.partition(",")[0] for label in lanes] == [t.name for t in in_order(trace)]
    marks = [n for lane in tree.all("div", "track") for n in lane.children if n.tag == "i"]
    assert len(marks) == len(trace.marks)


def in_order(trace):
    """By CTA: roles with their engines, barriers, memory."""
    for group in dict.fromkeys(t.group for t in trace.tracks):
        for kinds in ((Kind.ROLE, Kind.ENGINE), (Kind.BARRIER,), (Kind.MEMORY,)):
            yield from (t for t in trace.tracks if t.group == group and t.kind in kinds)


@pytest.mark.parametrize("name", NAMES)
def test_text_memory_and_barriers_are_on_it(zoo, pages, name):
    tree, p = pages(name), zoo(name)
    (text,) = tree.all("ol", "text")
    rows = p.source.text.removesuffix("\n").split("\n")
    assert [next(li.all("code")).said.strip() for li in text.children] == [r.strip() for r in rows]
    assert [li.attributes["id"] for li in text.children] == [f"L{n + 1}" for n in range(len(rows))]
    parts = [n for n in tree.all("div", "part") if "gap" not in n.attributes["class"]]
    places = [(s, x) for s in p.strips for x in s.places]
    assert len(parts) == len(places)
    for part, (strip, x) in zip(parts, places, strict=True):
        style = dict(s.split(":") for s in part.attributes["style"].split(";"))
        wide = float(style["--w"].rstrip("%")) / 100
        assert x.name in part.attributes["title"] and (abs(wide * strip.limit - x.size) < 0.01 * strip.limit or strip.planned * 16 < strip.limit)
    cells = [c.said for c in tree.all("td")]
    assert all(x.name in cells for _, x in places) and all(any(c.startswith(b.name) for c in cells) for b in p.barriers)
    assert {r.name for r in p.roles} <= set(cells)


def test_it_reads_without_the_script_and_without_eyes(pages):
    """What needs the script is hidden until it runs; regions, lanes and pictures have names; one stop of the keyboard for all events."""
    tree = pages("gemm/gemm_sm90")
    assert next(tree.all("span", "zoom")).attributes["hidden"] == ""
    assert next(tree.all("html")).attributes["lang"] == "en"
    assert next(n.tag for n in tree.all() if re.fullmatch(r"h\d", n.tag)) == "h1"
    for n in tree.all():
        if n.attributes.get("role") in ("region", "img", "list") or n.tag in ("nav", "section"):
            assert n.attributes.get("aria-label"), n.attributes
        if n.tag == "button":
            assert n.attributes["aria-label"]
        if n.tag == "svg":
            assert n.attributes["aria-hidden"] == "true", "curves say nothing that slices do not"
    assert {n.attributes["tabindex"] for n in tree.all("b", "s")} == {"-1"}
    assert next(tree.all("p", "panel")).attributes["aria-live"] == "polite"


def test_a_hand_off_is_a_curve_from_lane_to_lane(zoo, pages):
    tree, trace = pages("gemm/gemm_sm90"), zoo("gemm/gemm_sm90").timeline.trace
    drawn = [tuple(map(int, n.attributes["data-a"].split())) for n in tree.all("path") if "data-a" in n.attributes]
    known = {(a.source, a.target): a for a in trace.arrows}
    assert len(drawn) > 40 and all(known[d].last for d in drawn)
    names = {(trace.tracks[trace.slices[a].track].name, trace.tracks[trace.slices[b].track].name) for a, b in drawn}
    assert {("load: copies", "math[0]"), ("load: copies", "math[1]"), ("math[0]", "load")} <= names


# --- findings


def test_findings_stand_first_and_at_their_lines(stuck):
    tree = read(page(stuck))
    (section, *_) = [n for n in tree.all("section") if n.attributes["id"] != "text"]
    assert section.attributes["id"] == "findings"
    errors = [d for d in stuck.findings if d.severity is Severity.ERROR]
    assert [d.code for d in errors] == ["core/arrival-count"]
    (d,) = errors
    (line,) = [n for n in tree.all("li") if n.attributes.get("id") == f"L{d.span.line}"]
    assert d.code in line.said and d.message in line.said and d.fix in line.said and d.why in line.said
    assert next(line.all("mark")).said == stuck.source.line(d.span.line)[d.span.column - 1 : d.span.end_column - 1]
    assert d.message in section.said and f"#L{d.span.line}" in {a.attributes["href"] for a in section.all("a")}
    assert "1 error" in next(tree.all("span", "badge")).said
    (faults,) = tree.all("ul", "faults")
    assert "deadlock" in faults.said and "waits for parity" in faults.said and "idle" not in faults.said
    waiting = [n for n in tree.all("b", "stuck")]
    assert len(waiting) == 2 * 3
    assert not list(tree.all("b", "wrong")), "a declaration does not run"


def test_what_runs_at_a_line_with_an_error_is_marked(zoo):
    p = zoo("gemm/gemm_sm90")
    at = next(n for n, row in enumerate(p.source.text.split("\n"), 1) if "wgmma acc" in row)
    found = tuple(
        Diagnostic("core/x", "no", Span(p.source.name, n, 3, n, 9), severity) for n, severity in ((at, Severity.ERROR), (at + 3, Severity.WARNING))
    )
    tree = read(page(replace(p, findings=found)))
    marked = {n.attributes["data-l"] for n in tree.all("b", "wrong")}
    assert marked == {str(at)} and "at a line with an error" in next(tree.all("ul", "key")).said


HOSTILE = "cake 1 # </script><script>alert(1)</script> \u202e \x00 &amp; \" ' <img src=x onerror=y>\n" + "x" * 5000 + "\n"


def test_a_text_can_not_write_the_page():
    at = Span("<b>.cake", 1, 1, 1, 5)
    d = Diagnostic(
        "type/<i>",
        "</style><b>bold",
        at,
        resource="<r>",
        why="</div>",
        fix="<a href=x>",
        related=(Related("</li>", at),),
        witness=Witness((("<n>", 1),), ("<s>",)),
    )
    p = Picture(Source("<b>.cake", HOSTILE), None, None, (d,), missing={"timeline": "<why>"})
    tree = read(page(p))
    assert len(list(tree.all("script"))) == 1 and not list(tree.all("img")) and len(list(tree.all("style"))) == 1
    (text,) = tree.all("ol", "text")
    assert "\u202e" not in text.said and "\x00" not in text.said and "</script><script>" in text.said
    assert [n.said for n in tree.all("h1")] == ["<b>.cake"]
    for part in ("</style><b>bold", "<r>", "</div>", "<a href=x>", "</li>", "<n>", "<s>", "<why>"):
        assert part in tree.said


def test_what_is_known_of_a_text_without_a_meaning():
    """The text, its findings, and why there is no more."""
    p = Picture(
        Source("k.cake", "cake 1\nkernel"),
        None,
        None,
        (Diagnostic("syntax/expected", "no", Span("k.cake", 2, 1, 2, 7)),),
        missing={"timeline": "Nothing runs."},
    )
    tree = read(page(p))
    assert [n.attributes["id"] for n in tree.all("section")] == ["text", "findings", "over-time"]
    assert "Nothing runs." in tree.said and "syntax/expected" in next(n for n in tree.all("li") if n.attributes.get("id") == "L2").said


def test_a_finding_of_another_file_and_of_no_line(zoo):
    p = zoo("softmax/softmax_cluster")
    found = (Diagnostic("plugin/x", "elsewhere", Span("other.cake", 3, 1, 3, 2)), Diagnostic("rules/x", "nowhere"))
    tree = read(page(replace(p, findings=found)))
    assert not [n for n in tree.all("li") if n.attributes.get("id", "").startswith("L") and list(n.all("div", "finding"))]
    assert len(list(tree.all("div", "finding"))) == 2


# --- colours


def variables() -> dict[str, dict[str, str]]:
    """The colours of either theme."""
    css = files("cake_core.show").joinpath("page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    first = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    return {"light": first, "dark": first | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark))}


def luminance(color: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    x, y = sorted((luminance(a), luminance(b)))
    return (y + 0.05) / (x + 0.05)


TEXTS = [(f"{k}-ink", k) for k in ("wait", "issue", "engine", "arrive", "access", "other", "stuck", "phase", "odd", "hot")]
TEXTS += [(a, b) for a in ("ink", "mute", "link") for b in ("back", "card")] + [("ink", f"{k}-back") for k in ("error", "warning", "note")]
TEXTS += [(k, f"{k}-back") for k in ("error", "warning", "note", "ok")] + [("error", "card"), ("word", "card"), ("comment", "card")]
TEXTS += [("mute", f"{k}-back") for k in ("error", "warning", "note")] + [("link", f"{k}-back") for k in ("error", "warning", "note")]
TEXTS += [("part-ink", f"c{n}") for n in range(6)]
SHAPES = [(k, "back") for k in ("hatch", "write", "read", "curve", "engine")] + [("barrier", "back")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_read(theme):
    """WCAG 2.2: text 4.5 to 1 (1.4.3), shapes that tell something by themselves 3 to 1 (1.4.11)."""
    of = variables()[theme]
    assert {f"{a} on {b}": round(contrast(of[a], of[b]), 2) for a, b in TEXTS if contrast(of[a], of[b]) < 4.5} == {}
    assert {f"{a} on {b}": round(contrast(of[a], of[b]), 2) for a, b in SHAPES if contrast(of[a], of[b]) < 3} == {}


def test_contrast_is_measured():
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_lanes_are_as_high_as_the_curves_take_them_for():
    """Heights stand in the style sheet and in what draws the curves."""
    from cake_core.show.lanes import HEIGHT

    css = files("cake_core.show").joinpath("page.css").read_text(encoding="utf-8")
    assert int(re.search(r"\.lane\.role \{ height: (\d+)px", css)[1]) == HEIGHT[Kind.ROLE]
    assert int(re.search(r"\.lane\.engine \{ height: (\d+)px", css)[1]) == HEIGHT[Kind.ENGINE]
