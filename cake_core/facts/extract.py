"""Facts of an elaborated derived kernel: `facts_of`. One pass over the text; nothing is decided here."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, replace

from cake_core import effects as declared
from cake_core.architecture import Architecture
from cake_core.facts.constant import Constant, values_of
from cake_core.facts.divisions import divided
from cake_core.facts.executing import chosen_in, executing
from cake_core.facts.inline import Env, calls_in, inline, swapped
from cake_core.facts.schema import (
    Access,
    Act,
    Arrive,
    AtOnce,
    BarrierRef,
    Block,
    Branch,
    By,
    Commit,
    Completion,
    Drain,
    EngineArrive,
    Event,
    Extent,
    Facts,
    Init,
    Loop,
    Meet,
    Node,
    Region,
    RoleFacts,
    Set,
    Tensor,
    Wait,
    While,
    WithBytes,
    WithCommit,
    WithGroup,
)
from cake_core.facts.special import Made, Masked, specials
from cake_core.frozen import frozen, thawed
from cake_core.ir import nodes as ir
from cake_core.ir.build import lift
from cake_core.ir.flow import walk
from cake_core.ir.nodes import Assign, Binary, Call, Declare, Expr, For, If, Int, Kernel, Let, Name, Op, Role, Stmt, Var
from cake_core.ir.places import names, place_of, root
from cake_core.ir.plan import Plan, read_plan
from cake_core.ir.printer import kernel_text
from cake_core.ir.types import ELEMENTS, Level, Scalar, Tile
from cake_core.ir.visit import calls
from cake_core.primitive.asking import attributes_of, effects_of
from cake_core.primitive.groups import warps_of
from cake_core.source import Span


def facts_of(kernel: Kernel, registry, arch: Architecture) -> Facts:
    """The facts of `kernel`, an elaborated derived form. Raises CakeError where a primitive fails when it is asked for effects."""
    plan = read_plan(kernel, warps_of(kernel, registry), registry.spaces)
    reader = Reader(kernel, registry, plan, specials(kernel, registry, {b.name: b.shape for b in plan.buffers.values()}))
    before, roles, after = [], [], []
    env: Env = {}
    for s in kernel.body:
        if isinstance(s, Role):
            roles.append((s, dict(env)))
        else:
            (after if roles else before).extend(reader.scope(None, env).statement(s))
    by_name = {r.name: r for r in plan.roles}
    return Facts(
        kernel=kernel.name,
        arch=arch.name,
        scalars=tuple(p.name for p in kernel.params if p.mode is None and p.declared.name in ("i32", "u32", "i64", "u64")),
        tensors=tuple(_tensor(p, reader) for p in kernel.params if p.mode is not None),
        requires=tuple(e for c in kernel.clause(ir.Require) for e in c.exprs),
        assumes=tuple(e for c in kernel.clause(ir.Assume) for e in c.exprs),
        cluster=plan.cluster,
        axis=kernel.cluster.axis.name if kernel.cluster else None,
        pair=plan.pair,
        warps=plan.warps,
        launch=replace(plan.launch, items=inline(plan.launch.items, env)),
        roles=tuple(RoleFacts(by_name[r.name], reader.scope(r, at).block(r.body)) for r, at in roles),
        before=tuple(before),
        after=tuple(after),
        barriers=plan.barriers,
        buffers=plan.buffers,
        columns=plan.tensors,
        text=kernel_text(kernel),
    )


def _tensor(p: ir.Param, reader: Reader) -> Tensor:
    t = reader.types.get(p.name)
    shape = tuple(lift(d) for d in t.shape) if isinstance(t, Tile) else ()
    return Tensor(p.name, p.mode, t.elem.bits if isinstance(t, Tile) else 0, shape, p.span)


@thawed
class Reader:
    kernel: Kernel
    registry: object
    plan: Plan
    specials: dict[int, tuple[Made | Masked, ...]]
    count: int = 0
    types: dict[str, Tile] = field(init=False)  # of parameters, shapes as expressions
    constant: Constant = field(init=False)

    def __post_init__(self) -> None:
        self.constant = Constant.of(self.kernel, self.registry)
        self.types = {p.name: Tile("global", ELEMENTS[p.declared.name], p.declared.groups) for p in self.kernel.params if p.mode is not None}

    def number(self) -> int:
        self.count += 1
        return self.count

    def scope(self, role: Role | None, env: Env) -> Scope:
        if role is None:
            return Scope(self, set(), env)
        fragments = {d.name: d for s in walk(role.body) if isinstance(s, Declare) and s.space == "frag" for d in s.declarations}
        return Scope(self, set(_assigned(role.body)), env, fragments=fragments, warps=next(r.warps for r in self.plan.roles if r.name == role.name))


def _assigned(body: ir.Block):
    """Names that are variables: their value at a place depends on the way there."""
    for s in walk(body):
        if isinstance(s, Var):
            yield from (b.name for b in s.bindings)


def _index_type(s: For) -> Scalar | None:
    """The type of a loop's index: as uniform as its bounds; which values it has the bounds say."""
    types = [t for t in (s.lo.type, s.hi.type if s.hi is not None else None) if isinstance(t, Scalar)]
    return Scalar(types[0].elem, max(t.level for t in types)) if types else None


@frozen
class ReadNames:
    """By identity of a call, the name that stands for its value; and what gives the names their values."""

    names: dict[int, Name]
    sets: tuple[Set, ...]


#: Nodes of an expression that is still written out where its name stands; of a longer one nothing is known.
LONGEST = 400

#: What an event is called that is no operation and calls nothing that touches memory.
_WORDS = {Let: "let", Var: "var", Assign: "="}


@thawed
class Scope:
    """Reads statements of one block. `env`: what names stand for; `variables`: names that events set."""

    reader: Reader
    variables: set[str]
    env: Env
    taken: set[str] = field(default_factory=set)
    fragments: dict[str, ir.Declaration] = field(default_factory=dict)
    warps: int = 0

    def inner(self) -> Scope:
        return Scope(self.reader, self.variables, dict(self.env), self.taken, self.fragments, self.warps)

    def block(self, block: ir.Block) -> Block:
        inner = self.inner()
        return tuple(node for s in block for node in inner.statement(s))

    def statement(self, s: Stmt, by: By = By.ALL, warp: int | None = None) -> tuple[Node, ...]:
        match s:
            case Declare():
                return ()
            case For():
                bounds = (s.lo, s.hi, s.words.get("step"))
                read = self._read_names(bounds)
                return (*self._asked(bounds, by, warp, read), self._loop(s, *(swapped(x, read.names) for x in bounds)))
            case ir.While(test, _, body):
                read = self._read_names((test,))
                asked = self._asked((test,), by, warp, read)
                number = self.reader.number()
                again = self._asked((test,), by, warp, read) if asked else ()
                return (*asked, While(number, self.value(swapped(test, read.names)), (*self.block(body), *again), s.span))
            case If():
                read = self._read_names((s.test,))
                return (*self._asked((s.test,), by, warp, read), *self._if(replace(s, test=swapped(s.test, read.names)), by, warp))
        return self._event(s, by, warp)

    def value(self, e: Expr) -> Expr:
        return inline(e, self.env)

    # --- scopes ----------------------------------------------------------------------------------------------------

    def _loop(self, s: For, lo: Expr, hi: Expr, step: Expr | None) -> Loop:
        number = self.reader.number()
        lo, hi = self.value(lo), self.value(hi)
        inner = self.inner()
        var = inner._bind(s.pattern[0], _index_type(s))
        body = tuple(node for x in s.body for node in inner.statement(x))
        self.taken.discard(var)
        return Loop(number, var, lo, hi, self.value(step) if step is not None else Int(1), body, s.span)

    def _bind(self, name: str, type=None) -> str:
        """A name for a value of `type` that holds from here on: its own, if nothing around it has it."""
        own = name if name not in self.taken and (name not in self.variables or name not in self.env) else f"{name}_{self.reader.number()}"
        self.taken.add(own)
        self.env[name] = Name(own, type=type)
        return own

    def _if(self, s: If, by: By, warp: int | None) -> tuple[Node, ...]:
        """Conditions on the executing thread say who; what is left of the test is a branch."""
        by, warp, rest = executing(s, by, warp)
        rest = [self.value(e) for e in rest]
        if not rest:
            inner = self.inner()
            return tuple(node for x in s.then for node in inner.statement(x, by, warp))
        number = self.reader.number()
        test = rest[0]
        for more in rest[1:]:
            test = Binary("and", test, more, span=s.test.span)
        inner = self.inner()
        then = tuple(node for x in s.then for node in inner.statement(x, by, warp))
        other = tuple(node for x in s.other or () for node in self.inner().statement(x, by, warp))
        return (Branch(number, test, then, other, s.span),)

    # --- events ----------------------------------------------------------------------------------------------------

    def acts(self, s: Stmt, by: By, warp: int | None) -> tuple[Act, ...]:
        """What a statement does, nested ones left out, to the places that it names."""
        effects = effects_of(s, self.reader.registry)
        chosen = chosen_in(getattr(s, f.name) for f in fields(s))
        acts = tuple(self._act(e, chosen) for e in effects)
        if isinstance(s, Op) and isinstance(getattr(s.value, "type", None), Scalar) and (value := self._or_none(s.value)) is not None:
            acts = tuple(replace(a, value=value) if isinstance(a, Access) and a.mode is declared.Mode.WRITE and _one(a.region) else a for a in acts)
        if by is By.ALL and warp is None:
            acts = divided(s, effects, acts, self.fragments, self.warps, self.reader.registry, self.reader.plan.buffers, self.reader.types)
        return acts

    def _event(self, s: Stmt, by: By, warp: int | None) -> tuple[Event, ...]:
        read, acts = self._settled(self.acts(s, by, warp), by, warp, s.span)
        sets = self._sets(s)
        said = attributes_of(s, self.reader.registry)
        made = tuple(replace(m, bound=self.value(m.bound)) if isinstance(m, Masked) else m for m in self.reader.specials.get(id(s), ()))
        if not acts and not sets and not said and not made:
            return read
        op = s.name if isinstance(s, Op) else next((c.name for c in calls(s) if self._touches(c)), _WORDS.get(type(s), type(s).__name__.lower()))
        return (*read, Event(self.reader.number(), op, by, warp, acts, sets, s.span, said, made))

    def _read_names(self, exprs: tuple[Expr | None, ...]) -> ReadNames:
        """Names for what a condition, or a loop's bounds, read that may be another value each time: memory that somebody writes, and registers.
        Inputs are read as they are written: their elements are the same wherever they are named."""
        made = {id(c): c for c in calls_in(exprs) if isinstance(c.type, Scalar) and self.reader.constant.changes(c)}
        sets = {}
        for key, c in made.items():
            at = root(next(iter(c.positional), c))
            own = self._bind(f"{at.id}[..]" if at is not None else c.name, c.type)
            sets[key] = Set(own, None, self._source(c), values_of(c.type), _each(c))
        return ReadNames({k: Name(x.name, type=made[k].type) for k, x in sets.items()}, tuple(sets.values()))

    def _settled(self, acts: tuple[Act, ...], by: By, warp: int | None, at: Span) -> tuple[tuple[Event, ...], tuple[Act, ...]]:
        """Acts that name a place by what is read, which may be another one each time, and in front of them what gives it a name."""
        read = self._read_names(acts)
        if not read.sets:
            return (), acts
        return (Event(self.reader.number(), "let", by, warp, (), read.sets, at),), swapped(acts, read.names)

    def _asked(self, exprs: tuple[Expr | None, ...], by: By, warp: int | None, read: ReadNames) -> tuple[Event, ...]:
        """What a condition, or a loop's bounds, touch in memory when they are evaluated, and what is read so; of a `while` in front of each round."""
        made = [(c, self._touches(c)) for e in exprs if e is not None for c in calls(e)]
        chosen = chosen_in(exprs)
        acts = tuple(self._act(e, chosen) for c, touches in made if touches for e in self.reader.registry.functions[c.name].effects(c))
        if not acts and not read.sets:
            return ()
        first = next((c for c, touches in made if touches), made[0][0])
        before, acts = self._settled(acts, by, warp, first.span)
        return (*before, Event(self.reader.number(), first.name, by, warp, acts, read.sets, first.span))

    def _touches(self, call: Call) -> bool:
        function = self.reader.registry.functions.get(call.name)
        return function is not None and any(isinstance(e, declared.Access) for e in function.effects(call))

    def _sets(self, s: Stmt) -> tuple[Set, ...]:
        """What the statement binds or assigns, integers and conditions only: the rest decides nothing."""
        match s:
            case Let(bindings):
                out = []
                for b in bindings:
                    if not isinstance(b.value.type, Scalar):
                        continue
                    value = self.value(b.value)
                    if self._size(value) > LONGEST:  # such as a chain of `let`s, which doubles at every link
                        out.append(Set(self._bind(b.name, b.value.type), None, each=_each(b.value)))
                    elif not self.reader.constant.known(value):
                        out += self._set(b.name, b.value, bind=True)
                    elif self._varies(value):
                        out.append(Set(self._bind(b.name, b.value.type), value))
                    else:
                        self.env[b.name] = value
                return tuple(out)
            case Var(bindings):
                out = [x for b in bindings if isinstance(b.value.type, Scalar) for x in self._set(b.name, b.value)]
                for b in bindings:
                    self.env.pop(b.name, None)
                return tuple(out)
            case Assign(Name(id), value) if isinstance(value.type, Scalar) and id in self.variables:
                return tuple(self._set(id, value))
            case Assign(ir.Tuple(items)):
                return tuple(Set(i.id, None, range=values_of(i.type), each=True) for i in items if isinstance(i, Name) and i.id in self.variables)
            case Op(words=words) if isinstance(name := words.get("as"), Name):
                return (Set(self._bind(name.id), None, each=True),)
        return ()

    def _set(self, name: str, value: Expr, bind: bool = False) -> list[Set]:
        """A variable is given a value, or (`bind`) a name gets one. Where the value is made of elements of shared memory, these are named first."""
        heard = {} if self._source(value) is not None else {id(c): (c, at) for c in calls(value) if (at := self._source(c)) is not None}
        first = {key: Set(self._bind(f"{name}.{n}", c.type), None, at, values_of(c.type), _each(c)) for n, (key, (c, at)) in enumerate(heard.items())}
        named = swapped(value, {key: Name(x.name, type=heard[key][0].type) for key, x in first.items()})
        known = self._or_none(named)
        if known is None:
            first, named = {}, value
        own = self._bind(name, value.type) if bind else name
        return [*first.values(), Set(own, known, self._source(value), values_of(value.type), _each(value))]

    def _source(self, e: Expr) -> Region | None:
        """The element of shared memory that an expression is."""
        function = self.reader.registry.functions.get(e.name) if isinstance(e, Call) and isinstance(e.type, Scalar) else None
        read = function.effects(e) if function is not None else ()
        if len(read) != 1 or not isinstance(read[0], declared.Access) or read[0].mode is not declared.Mode.READ or read[0].cta is not None:
            return None
        region = self._region(read[0].place)
        return region if _one(region) else None

    def _or_none(self, e: Expr) -> Expr | None:
        value = self.value(e)
        return value if self.reader.constant.known(value) else None

    def _size(self, e: Expr) -> int:
        """Nodes of an expression, counted as far as it matters."""
        count, stack = 0, [e]
        while stack and count <= LONGEST:
            x = stack.pop()
            count += 1
            stack.extend(getattr(x, f.name) for f in fields(x) if f.name not in ("span", "type")) if is_dataclass(x) else None
            if isinstance(x, tuple):
                stack.extend(x)
        return count

    def _varies(self, e: Expr) -> bool:
        """Whether it depends on a variable, which may be set again while the value is in use."""
        return any(n.id in self.variables for n in names(e))

    # --- effects ---------------------------------------------------------------------------------------------------

    def _act(self, e: declared.Effect, chosen: dict[int, Expr]) -> Act:
        match e:
            case declared.Access():
                cta, adds, when = (None if x is None else self.value(x) for x in (e.cta, e.adds, chosen.get(id(e.place), e.when)))
                done = self._completion(e.completion)
                return Access(
                    self._region(e.place), e.mode, e.proxy, done, e.issuer, cta, e.atomic, None, e.clips, e.width, when, e.order, e.scope, adds, e.front
                )
            case declared.BarrierInit(barrier):
                return Init(root(barrier).id)
            case declared.BarrierWait(barrier, parity):
                return Wait(self._barrier(barrier), self.value(parity))
            case declared.BarrierArrive(barrier, cta, expect):
                return Arrive(self._barrier(barrier), None if cta is None else self.value(cta), expect)
            case declared.EngineCommit(barrier, engine, mask):
                return EngineArrive(self._barrier(barrier), engine, mask)
            case declared.CommitGroup(queue):
                return Commit(queue)
            case declared.WaitGroup(queue, pending, reads_only):
                return Drain(queue, pending, reads_only)
            case declared.Rendezvous(scope, threads, number, waits):
                return Meet("named" if number is not None else scope, None if number is None else self.value(number), threads, waits)
        return e

    def _barrier(self, e: Expr) -> BarrierRef:
        index = self.value(e.indices[0]) if isinstance(e, ir.Index) else Int(0)
        return BarrierRef(root(e).id, index)

    def _completion(self, c: declared.Completion) -> Completion:
        match c:
            case declared.Now():
                return AtOnce()
            case declared.InGroup(queue):
                return WithGroup(queue)
            case declared.ByCommit(engine):
                return WithCommit(engine)
        return WithBytes(self._barrier(c.barrier), c.bytes, c.mask, None if c.cta is None else self.value(c.cta))

    def _region(self, e: Expr) -> Region:
        base = root(e)
        declared_type = self.reader.types.get(base.id) or base.type
        if not isinstance(declared_type, Tile):  # a named value in registers: it has no parts
            return Region("registers", base.id, (), ())
        place = place_of(e, declared_type)
        box = tuple(Extent(self.value(p.lo), Int(1) if p.size is None else self.value(lift(p.size)), p.size is None) for p in place.parts)
        return Region(_memory(base, declared_type, self.reader), base.id, tuple(self.value(x) for x in place.slots), box)


def _each(e: Expr) -> bool:
    """Whether the warps of an instance may have different values of it."""
    return e.type.level > Level.INSTANCE


def _one(r: Region) -> bool:
    """Whether it is one element of shared memory."""
    return r.memory == "shared" and all(x.size == Int(1) for x in r.box)


def _memory(base: Name, t, reader: Reader) -> str:
    if base.id in reader.types:
        return "global"
    if base.id in reader.plan.tensors:
        return "tensor"
    return "shared" if base.id in reader.plan.buffers else "registers"
