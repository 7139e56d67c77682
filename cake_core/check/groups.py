"""Asynchronous groups: no fragment is touched while a group that uses it may be in flight (S7), and nothing is in flight
when a role ends (S17). Decided by the FIFO of groups on every path; positions in loops decide guards."""

from __future__ import annotations

from cake_core.check.paths import Paths
from cake_core.check.reads import read_parts
from cake_core.check.subject import Subject
from cake_core.diagnostics import Sink
from cake_core.effects import Access, CommitGroup, Fence, InGroup, WaitGroup
from cake_core.facts import Rows
from cake_core.frozen import frozen
from cake_core.ir.nodes import Assign, If, Op, Role, Stmt
from cake_core.ir.places import fragments_in, root
from cake_core.ir.visit import own_expressions
from cake_core.source import Span

LONGEST = 16  # groups told apart in a queue; the oldest beyond are one


@frozen
class Use:
    """A place that a group reads or writes, and the statement that started it."""

    name: str
    by: str
    span: Span


@frozen
class Queue:
    """Committed groups from oldest to newest, and the group that is still open."""

    groups: tuple[frozenset[Use], ...] = ()
    open: frozenset[Use] = frozenset()

    def wait(self, pending: int) -> Queue:
        return Queue(self.groups[max(len(self.groups) - pending, 0) :], self.open)

    def commit(self) -> Queue:
        groups = (*self.groups, self.open)
        if len(groups) > LONGEST:
            groups = (groups[0] | groups[1], *groups[2:])
        return Queue(groups)

    def join(self, other: Queue) -> Queue:
        """What may be in flight on either path, newest groups aligned."""
        n = max(len(self.groups), len(other.groups))
        a, b = ((frozenset(),) * (n - len(q.groups)) + q.groups for q in (self, other))
        return Queue(tuple(x | y for x, y in zip(a, b, strict=True)), self.open | other.open)

    def uses(self) -> frozenset[Use]:
        return self.open.union(*self.groups)


State = dict[str, Queue]


def check(subject: Subject, rows: Rows, sink: Sink) -> None:
    for role in subject.kernel.roles:
        _Run(subject, role, sink).analyse()


class _Run(Paths[State]):
    """Follows one role: the groups that may be in flight. A leader's queue is the leader's: only its path counts."""

    def __init__(self, subject: Subject, role: Role, sink: Sink) -> None:
        super().__init__(_join, _widen)
        self.subject, self.role, self.sink = subject, role, sink
        self.told: set[tuple[str, Span]] = set()  # fragment and start of its group: one finding each

    def analyse(self) -> None:
        end = self.block(self.role.body, {}, {})
        # a write to a tensor that outlives the role is visible when the grid ends
        tensors = {p.name for p in self.subject.kernel.params}
        left = {use for queue in end.values() for use in queue.uses() if use.name not in tensors}
        told = {span for _, span in self.told}
        for by, span in sorted({(use.by, use.span) for use in left if use.span not in told}, key=lambda x: x[1]):
            names = sorted(use.name for use in left if use.span == span)
            what = ", ".join(f"'{n}'" for n in names)
            self.sink.error(
                "core/in-flight-at-end",
                f"'{by}' on {what} may be in flight when role '{self.role.name}' ends",
                span,
                role=self.role.name,
                resource=names[0],
                why="nothing may be in flight at a role's end (S17)",
                fix="wait for its group before the role ends",
            )

    def asks(self, s: If, state: State) -> None:
        self._touched(s, state, ())

    def effects(self, s: Stmt, state: State) -> State:
        effects = self.subject.effects(s)
        started = [e for e in effects if isinstance(e, Access) and isinstance(e.completion, InGroup)]
        self._touched(s, state, tuple(root(e.place).id for e in started))
        state = dict(state)
        for e in started:
            q = state.get(e.completion.queue, Queue())
            name = s.name if isinstance(s, Op) else "an asynchronous access"
            state[e.completion.queue] = Queue(q.groups, q.open | {Use(root(e.place).id, name, s.span)})
        for e in effects:
            match e:
                case CommitGroup(queue):
                    state[queue] = state.get(queue, Queue()).commit()
                case WaitGroup(queue, pending):
                    state[queue] = state.get(queue, Queue()).wait(pending)
                case Fence("tensor_before"):
                    self._handed_over(s, state)
        return state

    def _handed_over(self, s: Stmt, state: State) -> None:
        """Loads and stores of tensor memory are complete before what orders them for another thread."""
        for queue in state.values():
            for use in sorted(queue.uses(), key=lambda u: (u.span, u.name)):
                if use.name in self.subject.plan.tensors:
                    self.sink.error(
                        "core/in-flight-at-hand-off",
                        f"'{use.by}' on '{use.name}' may be in flight when the role hands it over",
                        s.span,
                        role=self.role.name,
                        resource=use.name,
                        why=f"what was started at line {use.span.line} has not been waited for on every path",
                        fix="wait for it before the hand-off",
                    )

    def _touched(self, s: Stmt, state: State, started: tuple[str, ...]) -> None:
        """Fragments that the statement itself reads or writes; what it hands to a group is in order with that queue."""
        touched = {f.id for e in own_expressions(s) for f in fragments_in(read_parts(e, self.subject.registry))} - set(started)
        if isinstance(s, Assign) and (name := root(s.target)) is not None:
            touched.add(name.id)
        for queue in state.values():
            for use in sorted(queue.uses(), key=lambda u: (u.span, u.name)):
                if use.name in touched and (use.name, use.span) not in self.told:
                    self.told.add((use.name, use.span))
                    self.sink.error(
                        "core/fragment-in-flight",
                        f"'{use.name}' is touched while '{use.by}' may still use it",
                        s.span,
                        role=self.role.name,
                        resource=use.name,
                        why=f"the group started at line {use.span.line} has not been waited for on every path (S7)",
                        fix="wait for the group first",
                    )


def _join(a: State, b: State) -> State:
    return {q: a.get(q, Queue()).join(b.get(q, Queue())) for q in dict.fromkeys((*a, *b))}


def _widen(old: State, new: State) -> State:
    """Everything may be in every group: the end of a chain that does not settle by itself."""
    return {q: Queue((queue.uses(),) * LONGEST, queue.uses()) for q, queue in _join(old, new).items()}
