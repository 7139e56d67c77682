"""The relations that facts are written in as rows: their columns, one table. What rules match on and `cake facts` prints.

The table is the public schema of version `SCHEMA`. Columns are added without raising it; a column that changes its meaning, or
goes, raises it. `docs/facts.md` is written from here.
"""

from __future__ import annotations

from cake_core.effects import Issuer, Mode, Proxy
from cake_core.facts.schema import By
from cake_core.frozen import frozen

INT, BOOL, TEXT, EXPR = "int", "bool", "text", "expr"


@frozen
class Column:
    """`sort`: "int", "bool", "text" (an open name), "expr" (over the kernel's names, printed as text), or the name of the relation
    whose row it refers to. `values`: all that a text can be, where they are few. `many`: a tuple of the sort. `optional`: may
    have no value (`none`)."""

    name: str
    sort: str
    doc: str
    optional: bool = False
    many: bool = False
    values: tuple[str, ...] = ()


@frozen
class Relation:
    name: str
    doc: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)


def _enum(name: str, values, doc: str, optional: bool = False) -> Column:
    return Column(name, TEXT, doc, optional, values=tuple(str(v) for v in values))


#: Among whom a branch may be decided apart: nobody, CTAs aside; instances of a role; warps of one; threads of a warp.
APART = ("nobody", "instances", "warps", "threads")

#: Every relation has these.
COMMON = (
    Column("id", TEXT, "names the row in its relation"),
    Column("loc", TEXT, "line:column of the derived text, or of the text it was derived from"),
)

#: And every relation of something that happens has these.
HAPPENS = (
    *COMMON,
    Column("event", "event", "the statement whose act it is"),
    Column("role", "role", "who runs it; none before and behind the roles, where all threads do", optional=True),
    _enum("part", ("before", "role", "after"), "where it stands: before the roles, in one, behind them"),
    Column("op", TEXT, "the statement's verb"),
    _enum("by", By, "which threads of the instance execute it"),
    Column("warp", INT, "the one warp of the instance that executes it, where the text says so", optional=True),
    Column("threads", INT, "how many threads of an instance execute it; none where a condition that can't be counted decides", optional=True),
    Column("order", INT, "its place in the order of the text"),
    Column("loop", "loop", "the innermost loop around it", optional=True),
    Column("guarded", BOOL, "a branch stands around it"),
    _enum("apart", APART, "among whom a branch around it may be decided apart"),
    Column("ctas", INT, "ranks in the cluster of the CTAs that may execute it: those of its role, without those that a branch around it leaves out by their rank alone", many=True),
    Column("loaded", BOOL, "a number in it is read from memory or made of such; of an event, also one that decides whether it runs"),
)


def _happens(name: str, doc: str, *columns: Column) -> Relation:
    return Relation(name, doc, (*HAPPENS, *columns))


_CTA = Column("cta", EXPR, "rank in the cluster of the CTA that has it; none: the own", optional=True)

RELATIONS: dict[str, Relation] = {
    r.name: r
    for r in (
        Relation(
            "kernel",
            "The kernel; one row.",
            (
                *COMMON,
                Column("arch", TEXT, "the target"),
                Column("cluster", INT, "CTAs of a cluster"),
                Column("pair", BOOL, "the CTAs of a cluster are a pair"),
                Column("warps", INT, "warps of a CTA, pads included"),
                Column("threads", INT, "threads of a CTA, pads included"),
                Column("persistent", BOOL, "clusters take several items"),
                Column("items", EXPR, "work items; one cluster takes one at a time"),
                Column("resident", INT, "CTAs on a multiprocessor that the text asks for", optional=True),
                Column("planned_bytes", INT, "shared memory of buffers and barriers"),
                Column("shared_bytes", INT, "the same with what aligns the base"),
            ),
        ),
        Relation("limit", "A limit of the target.", (*COMMON, Column("value", INT, "the number"), Column("source", TEXT, "where it is from"))),
        Relation("capability", "What the target offers.", COMMON),
        Relation(
            "param",
            "A parameter of the kernel.",
            (
                *COMMON,
                _enum("mode", ("scalar", "in", "out", "inout", "workspace"), "how it is used"),
                Column("bits", INT, "of an element of a tensor", optional=True),
                Column("shape", EXPR, "one expression a dimension of a tensor", many=True),
            ),
        ),
        Relation(
            "require",
            "A condition that holds: `require` is checked by the host, `assume` is believed.",
            (*COMMON, Column("expr", EXPR, "the condition"), Column("believed", BOOL, "an `assume`")),
        ),
        Relation(
            "role",
            "A role.",
            (
                *COMMON,
                Column("instances", INT, "how many"),
                Column("warps", INT, "of an instance"),
                Column("threads", INT, "of an instance"),
                Column("first", INT, "its first warp in the CTA"),
                Column("end", INT, "one past its last warp, pads left out"),
                Column("pad", INT, "idle warps behind it"),
                Column("ctas", INT, "ranks in the cluster of the CTAs that have it", many=True),
                Column("registers", INT, "that a thread owns"),
                Column("words", INT, "words on its header that act at role entry: how many"),
            ),
        ),
        Relation(
            "role_word",
            "A word on a role's header that acts at role entry.",
            (
                *COMMON,
                Column("role", "role", "whose"),
                Column("word", TEXT, "the word"),
                Column("value", INT, "its number"),
                Column("groups_of", INT, "it acts on whole groups of so many warps"),
            ),
        ),
        Relation(
            "share",
            "Registers of the register file that some warps own.",
            (
                *COMMON,
                Column("holder", TEXT, "a role, or 'idle'"),
                Column("registers", INT, "a thread"),
                Column("threads", INT, "pads included"),
            ),
        ),
        Relation(
            "loop",
            "A loop of a role, or before or behind the roles.",
            (
                *COMMON,
                Column("role", "role", "whose", optional=True),
                Column("parent", "loop", "the loop around it", optional=True),
                Column("depth", INT, "loops around it"),
                Column("var", TEXT, "its index; none of a `while`", optional=True),
                Column("lo", EXPR, "first value", optional=True),
                Column("hi", EXPR, "bound, not reached", optional=True),
                Column("step", EXPR, "distance", optional=True),
                Column("test", EXPR, "the condition of a `while`", optional=True),
            ),
        ),
        Relation(
            "branch",
            "A branch.",
            (
                *COMMON,
                Column("role", "role", "whose", optional=True),
                Column("loop", "loop", "the innermost loop around it", optional=True),
                Column("test", EXPR, "the condition"),
                Column("uniform", BOOL, "all threads of all instances decide alike"),
            ),
        ),
        Relation(
            "event",
            "A statement that does something.",
            (*HAPPENS, Column("remote", BOOL, "it touches memory or a barrier of another CTA of the cluster")),
        ),
        Relation(
            "barrier",
            "An array of barriers with arrival counts, in shared memory.",
            (
                *COMMON,
                Column("kind", TEXT, "the word of its declaration"),
                Column("slots", INT, "barriers of the array"),
                Column("count", INT, "arrivals that complete a phase"),
                Column("offset", INT, "bytes from the aligned base"),
                Column("bytes", INT, "of the array"),
            ),
        ),
        Relation(
            "buffer",
            "Memory that has a name: shared, tensor memory, a tensor in global memory, registers.",
            (
                *COMMON,
                _enum("space", ("shared", "tensor", "global", "registers"), "where it lies"),
                Column("mode", TEXT, "of a tensor in global memory: in, out, inout", optional=True),
                Column("bits", INT, "of an element", optional=True),
                Column("slots", INT, "how many tiles", optional=True),
                Column("shape", EXPR, "of a tile, one a dimension", many=True),
                Column("offset", INT, "shared: bytes from the aligned base; tensor memory: first column", optional=True),
                Column("size", INT, "shared: bytes; tensor memory: columns", optional=True),
                Column("slot_bytes", INT, "shared: from one slot to the next", optional=True),
                Column("swizzle", INT, "shared: bytes of a row of the pattern, 0 none", optional=True),
                Column("alias", "buffer", "the buffer in whose bytes, or columns, it lies; of all that lie there one is in use at a time", optional=True),
                Column("home", TEXT, "in whose bytes, or columns, it lies: its own, or those of the buffer that it is declared `alias` of"),
            ),
        ),
        _happens(
            "access",
            "A read or a write.",
            Column("buffer", "buffer", "what it touches"),
            _enum("space", ("shared", "tensor", "global", "registers"), "where that lies"),
            _enum("mode", Mode, "read or write"),
            _enum("proxy", Proxy, "the path to memory"),
            _enum("issuer", Issuer, "who performs it"),
            _enum(
                "completes",
                ("now", "group", "bytes", "commit"),
                "when it is complete: with its event, its group, a barrier's bytes, an engine's commit",
            ),
            Column("queue", TEXT, "of its group", optional=True),
            Column("engine", TEXT, "that commits it", optional=True),
            Column("barrier", "barrier", "that counts its bytes", optional=True),
            Column("index", EXPR, "which barrier of the array", optional=True),
            Column("bytes", INT, "that it brings to it", optional=True),
            Column("mask", INT, "ranks whose memory it reaches: bit i is rank i", optional=True),
            Column("slot", EXPR, "one index a slot dimension", many=True),
            Column("lo", EXPR, "first element, one a dimension of the shape", many=True),
            Column("size", EXPR, "elements, one a dimension of the shape", many=True),
            Column("atomic", BOOL, "read and write in one step"),
            Column("clips", BOOL, "of a tile of a tensor, what lies past the extents is left alone"),
            Column("width", INT, "the address of each piece is a multiple of so many bytes; none: nothing is asked of it", optional=True),
            Column("turns", INT, "at the banks of shared memory, of the instruction that takes most; none: not known", optional=True),
            Column("sectors", INT, "of 32 bytes of global memory that a warp's instruction touches, of the one that wastes most; none: not known", optional=True),
            Column("useful", INT, "bytes that this instruction asks of them", optional=True),
            Column("piece", INT, "bytes of the widest piece of global memory that each thread could take at once, as its elements lie", optional=True),
            Column("run", INT, "bytes of its tile that surely lie side by side in global memory", optional=True),
            _enum("sem", ("acquire", "release", "acq_rel"), "what else it orders; none: nothing", optional=True),
            _enum("scope", ("cta", "cluster", "gpu", "sys"), "among whom it orders that, and is atomic", optional=True),
            _CTA,
        ),
        _happens(
            "barrier_use",
            "A barrier is used, in whatever way: waited for, arrived at, told of bytes.",
            Column("barrier", "barrier", "which array"),
            Column("index", EXPR, "which barrier of it"),
            _enum("how", ("wait", "arrive", "engine", "bytes"), "a wait, a thread's arrival, an engine's, the bytes of a copy"),
            Column("remote", BOOL, "the barrier may be that of another CTA"),
        ),
        _happens("init", "All barriers of an array start their phase 0.", Column("barrier", "barrier", "which")),
        _happens(
            "wait",
            "Until the phase of a parity is complete.",
            Column("barrier", "barrier", "which array"),
            Column("index", EXPR, "which barrier of it"),
            Column("parity", EXPR, "0 or 1"),
        ),
        _happens(
            "arrive",
            "One arrival by each executing thread.",
            Column("barrier", "barrier", "which array"),
            Column("index", EXPR, "which barrier of it"),
            _CTA,
            Column("expect", INT, "transaction bytes that it announces"),
        ),
        _happens(
            "engine_arrive",
            "One arrival by an engine, when all that the executing thread gave it before is complete.",
            Column("barrier", "barrier", "which array"),
            Column("index", EXPR, "which barrier of it"),
            Column("engine", TEXT, "which engine"),
            Column("mask", INT, "ranks of the CTAs whose barriers get it; none: the own", optional=True),
        ),
        _happens("commit", "Closes the thread's open group of a queue.", Column("queue", TEXT, "which")),
        _happens(
            "drain",
            "Waits until few groups of a queue are in flight.",
            Column("queue", TEXT, "which"),
            Column("pending", INT, "groups that may stay"),
            Column("reads_only", BOOL, "their reads are done, their writes may be pending"),
        ),
        _happens(
            "meet",
            "Threads meet.",
            _enum("scope", ("warp", "named", "cta", "cluster", "instance"), "who: those of a named barrier, or all of it"),
            Column("number", EXPR, "of the named barrier", optional=True),
            Column("count", INT, "threads that meet, where the text says so", optional=True),
            Column("waits", BOOL, "false: arrives and goes on"),
        ),
        _happens(
            "fence",
            "Orders accesses of one path before those of another.",
            Column("kind", TEXT, "what it orders"),
            Column("scope", TEXT, "among whom"),
        ),
        _happens("reserve", "Takes columns of tensor memory for the CTA.", Column("amount", INT, "columns")),
        _happens("free", "Gives columns of tensor memory back.", Column("amount", INT, "columns")),
        _happens(
            "grid_order",
            "Orders this grid and its neighbours in the stream.",
            Column("waits", BOOL, "until those before have ended; false: the next may start"),
        ),
        _happens(
            "attribute",
            "What a primitive says of its statement for rules alone.",
            Column("name", TEXT, "a plugin's own word"),
            Column("word", TEXT, "the value, as text"),
            Column("number", INT, "the value, if it is an integer", optional=True),
        ),
        _happens(
            "special",
            "A function of floats one of whose arguments may be infinite, or a number that stands in for minus infinity, as the text writes them.",
            Column("function", TEXT, "its name; of an operator its sign"),
            Column("nan", BOOL, "it may make a NaN of what is none"),
            Column("unmasks", BOOL, "it may take the stand-in from itself, which leaves an ordinary 0"),
        ),
        _happens(
            "masked",
            "A product whose left factor is 0, or has an exponential of minus infinity, in the columns from a bound on.",
            Column("bound", EXPR, "the first such column, as a number of the dimension that is summed over"),
            Column("buffer", "buffer", "the other factor"),
            Column("tensor", "buffer", "the tensor that all that is written there are tiles of; none: not known", optional=True),
            Column("extent", EXPR, "its extent in the dimension that is summed over", optional=True),
            Column("finite", BOOL, "an `assume` says that none of its elements is infinite or a NaN"),
        ),
        _happens(
            "assign",
            "A variable of the role gets a value.",
            Column("name", TEXT, "which"),
            Column("value", EXPR, "none: nothing is known of it", optional=True),
        ),
        Relation(
            "dimension",
            "A dimension of a tensor in global memory.",
            (
                *COMMON,
                Column("buffer", "buffer", "the tensor"),
                Column("number", INT, "from 0, outermost first"),
                Column("inner", BOOL, "the last one, whose elements lie side by side"),
                Column("size", EXPR, "elements"),
                Column("stride", EXPR, "bytes from one to the next, where nothing lies between"),
            ),
        ),
        Relation(
            "place",
            "A stretch of shared memory: a buffer, or an array of barriers.",
            (
                *COMMON,
                _enum("kind", ("buffer", "barrier"), "what lies there"),
                Column("number", INT, "from 0, in the order of the text, buffers first"),
                Column("offset", INT, "first byte, from the aligned base"),
                Column("end", INT, "one past its last byte"),
                Column("home", TEXT, "in whose bytes it lies: its own, or those of the buffer that it is declared `alias` of"),
            ),
        ),
        Relation("rank", "A CTA of the cluster.", (*COMMON, Column("number", INT, "its rank"))),
        Relation(
            "handoff",
            "What one straight stretch of a role's text brings to a barrier in one phase, as the barriers of one CTA get it.",
            (
                *COMMON,
                Column("barrier", "barrier", "which array"),
                Column("role", "role", "who brings it"),
                Column("stretch", INT, "numbers hand-offs of the kernel; rows of one hand-off share it"),
                Column("rank", INT, "of the CTA whose barrier gets it"),
                Column("arrivals", INT, "from all CTAs that have the role; none where they can't be counted", optional=True),
                Column("expected", INT, "bytes that an instance announces; none where the CTA isn't known", optional=True),
                Column("bytes", INT, "bytes that an instance's copies bring; none where the CTA isn't known", optional=True),
                Column("arrives", BOOL, "it arrives, at some rank"),
                Column("announces", BOOL, "it announces bytes, at some rank"),
                Column("brings", BOOL, "it brings bytes, to some rank"),
                Column("uniform", BOOL, "all instances do it, or none"),
            ),
        ),
        Relation("instance", "An instance of a role.", (*COMMON, Column("role", "role", "whose"), Column("number", INT, "from 0"))),
        Relation(
            "rendezvous",
            "A use of a named barrier by one instance, its number and guards decided for that instance.",
            (
                *COMMON,
                Column("instance", "instance", "who"),
                Column("role", "role", "of which role"),
                Column("number", INT, "of the barrier"),
                Column("count", INT, "threads that it states", optional=True),
                Column("threads", INT, "of the instance"),
                Column("waits", BOOL, "false: arrives and goes on"),
                Column("order", INT, "its place in the order of the text"),
            ),
        ),
    )
}
