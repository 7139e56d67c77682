"""Pairs of CTAs (S16) and where a role's warps start (S19): the words `pair`, `on` and `aligned`.

`cluster m = 2 pair m` pairs the two CTAs of a cluster: they share the statements of the tensor engine. `on pair` stands for
both CTAs, `on pair[r]` for the one of rank r; `pair.i` is the rank of the CTA at hand. In the derived form `on cluster[r]` is the one
of rank r of any cluster.
"""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.elaborate.scope import suggestion
from cake_core.ir.nodes import Cluster, Expr, Index, Name, Place, Words
from cake_core.ir.plan import pair_rank
from cake_core.primitive import Form

#: CTAs of a pair, and what a target must offer for them.
PAIR, CAPABILITY = 2, "cta_pair"
#: What warp 0 is a multiple of: a CTA has no more warps.
MOST_WARPS = 32


class Pairs:
    """Mixed into the elaborator."""

    pair = False

    @property
    def on(self) -> int | None:
        """Rank in its pair of the one CTA that has the role at hand; None: every CTA has it."""
        return pair_rank(self.role.words) if self.role is not None else None

    @property
    def aligned(self) -> int:
        """The first warp of the role at hand is surely at a multiple of this many warps."""
        if self.role is None:
            return 0
        if (at := self.role.words.get("at")) is not None:
            return at.value & -at.value or MOST_WARPS
        words = self.registry.role_words
        groups = [words[w.name].groups_of for w in self.role.words.items if w.name in words]
        word = self.role.words.get("aligned")
        return max(self.groups[self.role.group].aligned, *groups, word.value if word is not None else 1)

    def pair_words(self, c: Cluster, size: int) -> Words:
        """The words of a `cluster` clause: `pair AXIS`. Raises CakeError."""
        for w in c.words.items:
            if w.name != "pair":
                raise fail("type/unknown-word", f"'cluster' has no word '{w.name}'", w.span, fix=suggestion(w.name, ["pair"]))
            if not isinstance(w.value, Name) or w.value.id != c.axis.name:
                raise fail("type/axis", "'pair' names another axis than the cluster's", w.value.span, fix=f"write `pair {c.axis.name}`")
            if self.pair:
                raise fail("type/repeated", "word 'pair' stands twice", w.span)
            if size != PAIR:
                raise fail(
                    "type/not-implemented",
                    f"pairs in a cluster of {size} CTAs are not implemented yet",
                    w.span,
                    why="a cluster of one pair is",
                )
            if self.arch is not None and CAPABILITY not in self.arch.capabilities:
                raise fail(
                    "type/missing-capability",
                    f"'pair' needs '{CAPABILITY}', which {self.arch.name} does not offer",
                    w.span,
                    resource=CAPABILITY,
                )
            self.pair = True
        if c.words.flag:
            raise fail("type/unknown-word", f"'cluster' has no flag '{c.words.flag}'", c.words.span)
        return c.words

    def pair_place(self, e: Expr, what: str) -> Expr:
        """`pair` or `pair[r]`, as the value of the word `on`. Raises CakeError."""
        name = e.base if isinstance(e, Index) else e
        if self.form is Form.DERIVED and isinstance(e, Index) and name == Name("cluster"):
            return self._rank(e, what, self.cluster_size)
        if not isinstance(name, Name) or name.id != "pair":
            raise fail(
                "type/pair", f"{what} names no CTAs", e.span, fix="write `on pair` for both CTAs of a pair, `on pair[0]` for the first"
            )
        if not self.pair:
            raise fail("type/pair", f"{what} names a pair, and the cluster has none", e.span, fix="write `cluster AXIS = 2 pair AXIS`")
        if name is e:
            return e
        return self._rank(e, what, PAIR)

    def _rank(self, e: Index, what: str, ctas: int) -> Expr:
        if len(e.indices) != 1:
            raise fail("type/pair", f"{what} takes one rank", e.span)
        rank = self.constant_int(e.indices[0], f"the rank of {what}")
        if not 0 <= rank.value < ctas:
            raise fail("type/pair", f"rank {rank.value} of {what}", rank.span, why=f"the CTAs are 0 to {ctas - 1}")
        return replace(e, indices=(rank,))

    def end_words(self, place: Place, pipeline: str) -> Place:
        """The words of a pipeline's end agree with its role's. Raises CakeError."""
        words = []
        for w in place.words.items:
            if w.name != "on":
                raise fail(
                    "type/unknown-word", f"an end of pipeline '{pipeline}' has no word '{w.name}'", w.span, fix=suggestion(w.name, ["on"])
                )
            words.append(replace(w, value=self.pair_place(w.value, f"word 'on' of '{place.name}'")))
        if place.words.flag:
            raise fail("type/unknown-word", f"an end of pipeline '{pipeline}' has no flag '{place.words.flag}'", place.words.span)
        done = replace(place, words=replace(place.words, items=tuple(words)))
        role = next(r for r in self.roles if r.name == place.name)
        if pair_rank(done.words) != pair_rank(role.words) and words:
            raise fail(
                "type/pair",
                f"pipeline '{pipeline}' and role '{place.name}' disagree about the CTAs of the role",
                place.span,
                related=self.at("the role", role.span),
            )
        return done
