"""Typing of what a kernel declares: buffers, fragments and barriers, pipelines, tile schedules."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import Symbol, reported, suggestion
from cake_core.elaborate.typing import name_of
from cake_core.ir.aliases import WORD, mates, shared_with
from cake_core.ir.elementwise import PART
from cake_core.ir.nodes import Declaration, Declare, Name, Pipeline, TypeExpr
from cake_core.ir.plan import BufferPlan, tensor_plan
from cake_core.ir.types import ELEMENTS, Barriers, Elem, Named, State, Tile, Unknown, element_of
from cake_core.primitive import Form, FragmentType, WordSpec

BARRIER_BYTES = 8

#: Tile schedules and the options that each takes.
SCHEDULES = {"persistent": ("raster",), "grid": ("raster",)}
TILE_WORDS = (WordSpec("ctas", "constant", Form.SCHEDULE),)


class Declarations:
    """Mixed into the elaborator."""

    def _declare(self, s: Declare) -> Declare:
        space = self.registry.spaces.get(s.space)
        if space is None:
            raise fail("type/unknown-space", f"unknown space '{s.space}'", s.span, fix=suggestion(s.space, self.registry.spaces, "spaces"))
        if space.memory == "registers" and self.role is None:
            raise fail("type/placement", f"a '{s.space}' belongs to a role", s.span, why="its elements lie in the registers of one instance")
        if space.memory != "registers" and self.role is not None:
            raise fail("type/placement", f"a '{s.space}' buffer belongs to the kernel", s.span, fix="declare it before the roles")
        if space.memory != "registers" and self.inside:
            raise fail("type/placement", f"a '{s.space}' stands in a kernel's body, not in a block", s.span, fix="move it out")
        if space.memory == "barriers":
            self.check_form(Form.DERIVED, "a barrier declaration", s)
        self.need_capabilities(space, s)
        out = []
        for d in s.declarations:
            with self.sink.collecting(span=d.span, role=self.role.name if self.role else None):
                out.append(self._declaration(d, space))
        if len(out) < len(s.declarations):
            raise reported()
        return replace(s, declarations=tuple(out))

    def _declaration(self, d: Declaration, space) -> Declaration:
        declared, type_ = self._declared(d, space)
        done = replace(d, declared=declared, words=self.words(d.words, space.words, f"'{space.name}'", d.span))
        if done.words.word(WORD) is not None:
            self._alias(done, space)
        kind = {"registers": "fragment", "barriers": "barrier"}.get(space.memory, "buffer")
        if kind == "fragment":
            if (other := self.fragments.get(d.name)) is not None:
                raise fail("type/redefined", f"fragment '{d.name}' is declared twice in its role", d.span, related=self.at("the other one", other))
            self.fragments[d.name] = d.span
        self.scope.bind(d.name, Symbol(kind, type_, d.span, node=done))
        self.declarations[d.name] = done
        return done

    def _alias(self, d: Declaration, space) -> None:
        """A buffer in the bytes of another one (S14). Raises CakeError."""
        word = d.words.word(WORD)
        wanted = name_of(word.value) or ""
        symbol, other = self.scope.find(wanted), self.declarations.get(wanted)
        if symbol is not None and isinstance(symbol.type, Unknown):
            raise reported()
        if symbol is None or other is None or not isinstance(symbol.type, Tile) or symbol.type.space != space.name:
            buffers = [n for n, x in self.scope.names.items() if x.kind == "buffer" and isinstance(x.type, Tile) and x.type.space == space.name]
            fix = suggestion(wanted, buffers, "buffers") or "name a buffer that is declared before it"
            raise fail("type/alias", f"'{d.name}' would share the bytes of what is no '{space.name}' buffer", word.value.span, fix=fix)
        if (home := shared_with(other)) is not None:
            raise fail("type/alias", f"'{other.name}' lies in the bytes of '{home}' itself", word.value.span, related=self.related(symbol), fix=f"write `{WORD} {home}`")
        mine, theirs = (tensor_plan(x, space) if space.memory == "tensor" else BufferPlan.of(x) for x in (d, other))
        if len(mine.cells) > len(theirs.cells):
            raise fail("type/alias", f"'{d.name}' has {len(mine.cells)} {mine.unit}, '{other.name}' {len(theirs.cells)}", d.span, related=self.related(symbol), why="a buffer that shares bytes lies within them", fix=f"declare '{d.name}' first, and `{WORD} {d.name}` on the other")

    def _declared(self, d: Declaration, space) -> tuple[TypeExpr, Tile | Barriers]:
        t = d.declared
        if t.args:
            t = self._state(t, space)
        groups = tuple(tuple(self.constant_int(e, f"a dimension of '{d.name}'") for e in g) for g in t.groups)
        for e in (e for g in groups for e in g):
            if e.value <= 0:
                raise fail("type/dimension", f"'{d.name}' has a dimension of {e.value}", e.span, why="dimensions are positive")
        declared = replace(t, groups=groups)
        sizes = tuple(tuple(e.value for e in g) for g in groups)
        if space.memory == "barriers":
            if len(sizes) > 1 or sizes and len(sizes[0]) != 1:
                raise fail("type/dimension", f"barrier '{d.name}' takes one dimension", t.span)
            if space.element_types is not None and t.name not in space.element_types:
                raise fail("type/unknown-type", f"unknown kind of barrier '{t.name}'", t.span, fix=suggestion(t.name, space.element_types, "kinds"))
            slots = sizes[0][0] if sizes else None
            self._fits(d, BARRIER_BYTES * (slots or 1), space)
            return declared, Barriers(t.name, slots)
        elem = element_of(t) if t.args else self.element(t)
        if not t.args and space.element_types is not None and elem.name not in space.element_types:
            raise fail("type/element", f"'{elem}' does not live in '{space.name}'", t.span, why=f"it holds {', '.join(space.element_types)}")
        if not sizes:
            raise fail("type/dimension", f"'{d.name}' has no dimensions", t.span, fix="give it a shape, such as `[128, 64]`")
        self._fits(d, prod(n for g in sizes for n in g) * elem.bits // 8, space)
        axis = name_of(d.words.get("over"))
        if axis is not None and (axis not in ("row", "col") or len(sizes[-1]) != 1):
            raise fail("type/over", f"'{d.name}' lies over '{axis}'", d.span, why="a one-dimensional fragment lies over `row` or over `col`")
        if t.args and axis != "row":
            raise fail("type/over", f"'{d.name}' is a '{t.name}', which is there once a row", d.span, fix="declare it `over row`")
        return declared, Tile(space.name, elem, sizes, axis=axis, part=self._part(d, elem, axis, space))

    def _state(self, t: TypeExpr, space) -> TypeExpr:
        """A fragment of a type that a plugin defines: `topk(10, f32, i32)`, constants folded."""
        found = self.registry.reductions.get(t.name)
        if not isinstance(found, FragmentType) or space.memory != "registers":
            known = [n for n, r in self.registry.reductions.items() if isinstance(r, FragmentType)] if space.memory == "registers" else []
            raise fail("type/unknown-type", f"unknown type '{t.name}(..)' in '{space.name}'", t.span, fix=suggestion(t.name, known, "types"))
        self.need_capabilities(found, t)
        args = tuple(a if isinstance(a, Name) and a.id in ELEMENTS else self.constant_int(a, f"an argument of '{t.name}'") for a in t.args)
        out = replace(t, args=args)
        found.check(element_of(out).args, out)
        return out

    def _part(self, d: Declaration, elem: Elem, axis: str | None, space) -> str | None:
        """The operation of a lane-partial fragment; the bare flag `part` stands for its type, or for that of its companion."""
        part, bare = name_of(d.words.get("part")), d.words.flag == "part" and space.memory == "registers"
        if d.words.flag is not None and not bare:
            raise fail("type/unknown-word", f"'{d.name}' has no flag '{d.words.flag}'", d.span)
        if part is None and not bare:
            return None
        if axis != "row":
            raise fail("type/partial", f"'{d.name}' is lane-partial and does not lie over the rows", d.span, why="the lanes of a row are what is combined", fix="declare it `over row`")
        if isinstance(elem, State):
            if part not in (None, elem.type):
                raise fail("type/partial", f"'{d.name}' holds '{elem.type}' and is declared `part {part}`", d.span, fix="write `part`")
            return elem.type
        if part is not None and not (found := self.registry.reductions.get(part)) or part is not None and not found.partial:
            known = [n for n, r in self.registry.reductions.items() if r.partial]
            raise fail("type/partial", f"'{part}' is no operation that combines lanes", d.span, fix=suggestion(part, known, "operations"))
        return part or PART

    def _fits(self, d: Declaration, size: int, space) -> None:
        """One declaration alone must fit: what is built of it grows with its size. The sum of all is checked later."""
        if self.arch is None:
            return
        if space.memory == "registers":
            per_thread, limit = -(-size // (4 * 32 * max(self.warps, 1))), self.arch.limit("registers_per_thread")
            if per_thread > limit:
                why = f"{self.arch.name} has {limit} a thread ({self.arch.limits['registers_per_thread'].source})"
                raise fail("type/too-large", f"fragment '{d.name}' takes {per_thread} registers of each of {32 * self.warps} threads", d.span, resource=d.name, why=why, fix="a smaller shape, or more warps")
        elif space.memory != "tensor" and size > (limit := self.arch.limit("shared_bytes_per_block")):
            why = f"{self.arch.name} has {limit} bytes of shared memory a CTA ({self.arch.limits['shared_bytes_per_block'].source})"
            raise fail("type/too-large", f"'{d.name}' has {size} bytes", d.span, resource=d.name, why=why, fix="fewer slots, or a smaller shape")

    def element(self, t: TypeExpr) -> Elem:
        elem = ELEMENTS.get(t.name)
        if elem is None:
            raise fail("type/unknown-type", f"unknown element type '{t.name}'", t.span, fix=suggestion(t.name, ELEMENTS, "types"))
        return elem

    def _pipeline(self, s: Pipeline) -> Pipeline:
        slots = self.constant_int(s.slots, f"the number of slots of '{s.name}'")
        if slots.value < 1:
            raise fail("type/slots", f"pipeline '{s.name}' has {slots.value} slots", s.slots.span, why="a hand-off needs one at least")
        shared = mates({d.name: shared_with(d) for d in self.declarations.values()})
        for name in s.buffers:
            symbol = self.scope.find(name)
            if symbol is not None and isinstance(symbol.type, Unknown):
                raise reported()
            if s.buffers.count(name) > 1:
                raise fail("type/repeated", f"buffer '{name}' stands twice in pipeline '{s.name}'", s.span, resource=name)
            if symbol is None or symbol.kind != "buffer":
                raise fail("type/unknown-name", f"pipeline '{s.name}' holds '{name}', which is no buffer", s.span, fix=suggestion(name, self.scope.visible()))
            if isinstance(symbol.type, Tile) and (not symbol.type.slots or symbol.type.slots[0] != slots.value):
                have = symbol.type.slots[0] if symbol.type.slots else "none"
                self.scope.names[name] = replace(symbol, type=Unknown())  # its uses go with one of the two numbers
                raise fail("type/slots", f"pipeline '{s.name}' has {slots.value} slots, buffer '{name}' has {have}", s.slots.span, related=self.related(symbol), resource=name)
            if both := [n for n in s.buffers if n in shared.get(name, ())]:
                why = "both are in use at one time (S14)"
                raise fail("type/alias", f"'{name}' and '{both[0]}' share bytes, and pipeline '{s.name}' hands them over together", s.span, related=self.related(symbol), resource=name, why=why, fix="give each bytes of its own")
            other = self.pipeline_of.get(name)
            if other is not None:
                raise fail("type/slots", f"buffer '{name}' is in pipeline '{other}' already", s.span, resource=name)
        for place in (*s.producers, *s.consumers):
            if place.name not in self.role_names:
                raise fail("type/unknown-name", f"unknown role '{place.name}'", place.span, fix=suggestion(place.name, self.role_names, "roles"))
        s = replace(s, producers=tuple(self.end_words(e, s.name) for e in s.producers), consumers=tuple(self.end_words(e, s.name) for e in s.consumers))
        for ends in (s.producers, s.consumers):
            for n, place in enumerate(ends):
                if place.name in [e.name for e in ends[:n]]:
                    raise fail("type/repeated", f"role '{place.name}' stands twice", place.span)
        for place in s.consumers:
            if place.name in [e.name for e in s.producers]:
                raise fail("type/pipeline-ends", f"role '{place.name}' is at both ends of pipeline '{s.name}'", place.span, resource=s.name, why="a pipeline hands slots from one role to others", fix="where one role fills and reads, index a buffer by `e % slots` and leave the pipeline out (S5)")
        for name in s.buffers:
            self.pipeline_of[name] = s.name
        done = replace(s, slots=slots)
        self.scope.bind(s.name, Symbol("pipeline", Named("pipeline", s.name), s.span, node=done))
        return done
