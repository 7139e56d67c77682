"""Typing of roles, of the pipeline verbs in them, and of the launch line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import prod

from cake_core.diagnostics import fail
from cake_core.elaborate.inlines import expand
from cake_core.elaborate.pairs import MOST_WARPS
from cake_core.elaborate.scope import Symbol, suggestion
from cake_core.elaborate.turns import TURN_VERBS
from cake_core.elaborate.typing import described, named, range_of
from cake_core.ir import ranges
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Assign, Binary, Block, Expr, Int, Name, Op, Pipeline, Role, Tuple, Var, Words
from cake_core.ir.plan import ONCE
from cake_core.ir.types import I32, Level, Scalar, Unknown
from cake_core.primitive import Form, WordSpec

#: Verbs of a pipeline: on whose side each stands and whether it names a slot.
VERBS = {"acquire": ("producer", True), "commit": ("producer", False), "wait": ("consumer", True), "release": ("consumer", False), "drain": ("consumer", False)}

ROLE_WORDS = (
    WordSpec("at", "constant", Form.DERIVED, help="the role's first warp in the CTA"),
    WordSpec("pad", "constant", Form.DERIVED, help="idle warps behind the role's last one"),
    WordSpec("aligned", "constant", Form.SCHEDULE, help="the role's first warp is at a multiple of this many warps"),
    WordSpec("on", "pair", help="`pair` for both CTAs of a pair, `pair[r]` for one of them: which have the role"),
    WordSpec("over", "numbers", Form.SCHEDULE, help="(r, c): the warps of an instance are a grid of r rows and c columns"),
)
LAUNCH_WORDS = (WordSpec("ctas", "constant", Form.DERIVED),)
WARP = 32


#: How often a role's body is typed to find the levels of its variables, before the highest is taken.
ATTEMPTS = 4


def shrinking(body: Block) -> Iterator[str]:
    """Variables that are assigned anything but themselves and a constant that is not negative."""
    for a in walk(body):
        match a:
            case Assign(Name(x), Binary("+", Name(y), Int(n))) if x == y and n >= 0:
                continue
            case Assign(Tuple(items)):
                yield from (t.id for t in items if isinstance(t, Name))
            case Assign(Name(x)):
                yield x


class Roles:
    """Mixed into the elaborator."""

    verbs = (*VERBS, *TURN_VERBS)

    def _role(self, s: Role) -> Role:
        group = self.groups.get(s.group)
        if group is None:
            raise fail("type/unknown-group", f"unknown thread group '{s.group}'", s.span, fix=suggestion(s.group, self.groups, "groups"))
        self.need_capabilities(group, s)
        count = self._size(s, s.count, f"the size of role '{s.name}'")
        instances = self._size(s, s.instances, f"the number of instances of role '{s.name}'") if s.instances is not None else None
        threads = WARP * group.warps * count.value * (instances.value if instances is not None else 1)
        if self.arch is not None and threads > self.arch.limit("threads_per_block"):
            limit = self.arch.limits["threads_per_block"]
            raise fail("type/role-size", f"role '{s.name}' has {threads} threads", s.count.span, role=s.name, why=f"{self.arch.name} takes {limit.value} a CTA: {limit.source}")
        header = replace(s, count=count, instances=instances, words=Words())
        self.role = header
        try:
            with self.sink.collecting(role=s.name):  # an error in the words hides none in the body
                self.role = header = replace(header, words=self._role_words(s))
            if self.form is Form.SCHEDULE:
                written = expand(s.body, frozenset(VERBS), frozenset(self.scope.visible()), self.item_names, self.sink)
                s = replace(s, body=written)
                self.role = header = replace(header, body=written)
            return replace(header, body=self._role_body(s))
        finally:
            self.role = None

    def _size(self, s: Role, e: Expr, what: str):
        n = self.constant_int(e, what)
        if n.value < 1:
            raise fail("type/role-size", f"{what} is {n.value}", e.span, role=s.name)
        return n

    def _role_words(self, s: Role) -> Words:
        specs = ROLE_WORDS + tuple(WordSpec(name, "constant") for name in self.registry.role_words)
        words = self.words(s.words, specs, "a role", s.span)
        if words.flag not in (None, ONCE):
            raise fail("type/unknown-word", f"a role has no flag '{words.flag}'", s.words.span, fix=suggestion(words.flag, [ONCE, *(w.name for w in specs)]))
        limit = self.arch.limit("threads_per_block") // WARP if self.arch is not None else None
        for w in words.items:
            if w.name == "over":
                sizes = [e.value for e in w.value.items]
                if len(sizes) != 2 or min(sizes) < 1 or prod(sizes) != self.warps:
                    raise fail("type/role-size", f"the warps of an instance are {self.warps}, not a grid of {' x '.join(map(str, sizes))}", w.value.span, role=s.name, fix="write `over (rows, columns)` with rows * columns warps")
            elif w.name == "aligned" and (not 1 <= w.value.value <= MOST_WARPS or w.value.value & (w.value.value - 1)):
                raise fail("type/role-size", f"a role aligned to {w.value.value} warps", w.value.span, why=f"an alignment is a power of two, and a CTA has at most {MOST_WARPS} warps")
            elif w.name == "on":
                continue
            elif (word := self.registry.role_words.get(w.name)) is not None:
                self.need_capabilities(word, w)
                with self.sink.collecting(role=s.name, span=w.value.span):
                    word.check(w.value.value, self)
            elif w.value.value < 0 or w.name == "pad" and limit is not None and w.value.value > limit:
                raise fail("type/role-size", f"`{w.name} {w.value.value}` lies outside the CTA", w.value.span, why=f"{self.arch.name} takes {limit} warps a CTA" if limit else None)
        return words

    def _role_body(self, s: Role):
        """The body, again where a variable turned out to differ among more threads than was thought."""
        found = len(self.sink.items)
        self.shrinking = frozenset(shrinking(s.body))
        for attempt in count():
            if attempt == ATTEMPTS:  # a long chain of variables: all that are left may differ everywhere
                self.var_levels = dict.fromkeys(self.var_levels, Level.LANE) | {(b.name, b.span): Level.LANE for v in walk(s.body) if isinstance(v, Var) for b in v.bindings}
            known = dict(self.var_levels)
            self.fragments.clear()
            body = self.block(s.body)
            if self.var_levels == known:
                return body
            del self.sink.items[found:]

    # --- verbs

    def _verb(self, s: Op) -> Op:
        self.check_form(Form.SCHEDULE, f"'{s.name}'", s)
        side, names_slot = VERBS[s.name]
        if len(s.operands) != 1 or s.arrow is not None or s.words.flag is not None:
            raise fail("type/operands", f"'{s.name}' takes one pipeline", s.span, fix=f"write `{s.name} p{' as s' if names_slot else ''}`")
        p = self.expr(s.operands[0])
        if isinstance(p.type, Unknown):
            self._slot_words(s, names_slot)
            self._bind_unknown(s)
            return replace(s, operands=(p,))
        if not named(p.type, "pipeline"):
            raise fail("type/operand", f"'{s.name}' takes a pipeline, not {described(p.type)}", s.operands[0].span)
        pipeline: Pipeline = self.scope.find(p.id).node
        ends = pipeline.producers if side == "producer" else pipeline.consumers
        if self.role.name not in [e.name for e in ends]:
            other = " and ".join(f"'{e.name}'" for e in ends)
            raise fail("type/wrong-side", f"role '{self.role.name}' is no {side} of pipeline '{p.id}'", s.span, resource=p.id, why=f"`{s.name}` belongs to its {side}: {other}")
        self._slot_words(s, names_slot)
        if (slot := s.words.get("as")) is not None:
            self.scope.bind(slot.id, Symbol("slot", self.slot_type(pipeline), slot.span), shadows=("slot",))
        return replace(s, operands=(p,))

    def slot_type(self, pipeline: Pipeline) -> Scalar:
        return Scalar(I32, Level.INSTANCE, ranges.Range(0, pipeline.slots.value - 1))

    def _slot_words(self, s: Op, names_slot: bool) -> None:
        for w in s.words.items:
            if w.name != "as" or not names_slot:
                raise fail("type/unknown-word", f"'{s.name}' has no word '{w.name}'", w.span, fix="`as NAME` names the slot" if names_slot else None)
            if not isinstance(w.value, Name) or "." in w.value.id:
                raise fail("type/word", "'as' takes a new name for the slot", w.value.span)
            if w is not s.words.items[0]:
                raise fail("type/repeated", "word 'as' stands twice", w.span)

    # --- launch

    def _launch(self, s: Op) -> Op:
        self.check_form(Form.DERIVED, "'launch'", s)
        if self.role is not None or self.inside:
            raise fail("type/placement", "'launch' stands in a kernel's body, not in a block", s.span, fix="move it out")
        if self.launched is not None:
            raise fail("type/repeated", "'launch' stands twice", s.span, related=self.at("the other one", self.launched))
        self.launched = s.span
        if len(s.operands) != 1 or s.arrow is not None or s.words.flag not in (None, "persistent"):
            raise fail("type/operands", "'launch' takes the number of items, and `persistent` or nothing", s.span)
        words = self.words(s.words, LAUNCH_WORDS, "'launch'", s.span)
        self.at_least_one_cta(words)
        items = self.integer(s.operands[0], "the number of items")
        self.some(items, f"a launch of {items.value if isinstance(items, Int) else 'no'} items")
        return replace(s, operands=(items,), words=words)

    def some(self, items: Expr, what: str) -> None:
        """Raises CakeError for a number that is surely not positive."""
        if (hi := range_of(items).hi) is not None and hi < 1:
            raise fail("type/schedule", what, items.span, why="no value of the parameters gives the kernel anything to do")

    def at_least_one_cta(self, words: Words) -> None:
        ctas = words.get("ctas")
        if ctas is not None and ctas.value < 1:
            raise fail("type/schedule", f"{ctas.value} CTAs a multiprocessor", ctas.span, why="there is one at least")
