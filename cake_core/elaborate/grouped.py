"""Typing of `group { .. }`: asynchronous statements of one queue that are waited for together (S7)."""

from __future__ import annotations

from dataclasses import replace

from cake_core.diagnostics import fail
from cake_core.effects import Access, CommitGroup, InGroup, WaitGroup
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Block, Group, Op
from cake_core.primitive import Form
from cake_core.primitive.asking import effects_of


class Grouped:
    """Mixed into the elaborator."""

    def _group(self, s: Group) -> Group:
        self.check_form(Form.SCHEDULE, "'group'", s)
        if any(isinstance(around, Group) for around in self.inside):
            raise fail(
                "type/group", "a group in a group", s.span, why="an asynchronous statement is in one group", fix="leave the inner one out"
            )
        found = len(self.sink.items)
        body = self._inner(s, s.body)
        if len(self.sink.items) > found:
            return replace(s, body=body)  # what is missing in it may be what makes it a group
        return replace(s, body=body, queue=self._queue(s, body))

    def _queue(self, s: Group, body: Block) -> str:
        """The queue that the statements of a group have in common. Raises CakeError."""
        first: Op | None = None
        queue = None
        for inner in walk(body):
            for e in effects_of(inner, self.registry):
                match e:
                    case Access(completion=InGroup(other)):
                        if queue is not None and other != queue:
                            raise fail(
                                "type/group",
                                f"'{first.name}' and '{inner.name}' in one group",
                                inner.span,
                                related=self.at("the first one", first.span),
                                why="they are counted and waited for apart, each in its own order",
                                fix="write a group for each",
                            )
                        first, queue = first or inner, other
                    case CommitGroup() | WaitGroup():
                        what = "closes a group itself" if isinstance(e, CommitGroup) else "waits for groups"
                        raise fail(
                            "type/group",
                            f"'{inner.name}' in a group",
                            inner.span,
                            why=f"it {what}, and this one is open until its block ends",
                            fix="move it out of the group",
                        )
        if first is None:
            raise fail(
                "type/group",
                "nothing in this group is waited for by groups",
                s.span,
                why="`group` joins asynchronous statements, each of which is one group without it",
                fix="leave `group` out",
            )
        return queue
