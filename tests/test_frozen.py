"""`@frozen` against `@dataclass(frozen=True, slots=True)`: the same class, but for when its methods are made."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path

import pytest

from cake_core.frozen import FEW, frozen, thawed

CORE = Path(__file__).resolve().parents[1] / "cake_core"


@frozen
class Base:
    span: object = field(default=None, compare=False, repr=False, kw_only=True)


@frozen
class Pair(Base):
    """Two things."""

    left: int
    right: tuple = ()
    notes: list = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class PlainBase:
    span: object = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlainPair(PlainBase):
    left: int
    right: tuple = ()
    notes: list = field(default_factory=list, compare=False)


@frozen(order=True)
class Version:
    major: int
    minor: int = 0


@frozen(kw_only=True)
class Named:
    name: str
    made: str = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "made", self.name * 2)

    def __repr__(self):
        return "own"


@frozen
class Nothing:
    pass


BOTH = pytest.mark.parametrize("cls", [Pair, PlainPair], ids=["frozen", "dataclass"])


@BOTH
def test_objects_are_made_compared_and_printed_alike(cls):
    x = cls(1, (2,), span="here")
    assert x == cls(left=1, right=(2,), span="there") and x != cls(1) and x != (1, (2,))
    assert hash(x) == hash(cls(1, (2,))) == hash((1, (2,))) and len({x, cls(1, (2,))}) == 1
    assert repr(x) == f"{cls.__qualname__}(left=1, right=(2,), notes=[])"
    assert (x.span, x.notes) == ("here", []) and cls(1).notes is not cls(1).notes


@BOTH
@pytest.mark.parametrize("args, names", [((), {}), ((1, 2, 3, 4), {}), ((1,), {"left": 2}), ((1,), {"other": 2}), ((1, 2, 3, "span"), {})])
def test_wrong_arguments_are_refused(cls, args, names):
    for _ in range(FEW + 2):
        with pytest.raises(TypeError):
            cls(*args, **names)


@BOTH
def test_nothing_can_be_changed(cls):
    x = cls(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'left'"):
        x.left = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'left'"):
        del x.left
    assert not hasattr(x, "__dict__")


@BOTH
def test_the_standard_library_takes_it_for_a_dataclass(cls):
    x = cls(1, (2,), span=3)
    assert is_dataclass(x) and [f.name for f in fields(cls)] == ["span", "left", "right", "notes"]
    assert replace(x, left=5) == cls(5, (2,)) and replace(x, left=5).span == 3
    assert asdict(x) == {"span": 3, "left": 1, "right": (2,), "notes": []}
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other == x and other.span == 3 and type(other) is cls
    match x:
        case Pair(left, right) | PlainPair(left, right):
            assert (left, right) == (1, (2,))


def test_order():
    assert Version(1) < Version(1, 2) <= Version(1, 2) < Version(2) and max(Version(1), Version(0, 9)) == Version(1)
    with pytest.raises(TypeError):
        Version(1) < (1, 0)  # noqa: B015
    with pytest.raises(TypeError):
        Pair(1) < Pair(2)  # noqa: B015


def test_methods_of_the_class_stay_its_own():
    assert repr(Named(name="ab")) == "own" and Named(name="ab").made == "abab"
    with pytest.raises(TypeError):
        Named("ab")


def test_a_class_without_fields():
    assert Nothing() == Nothing() and hash(Nothing()) == hash(()) and repr(Nothing()) == "Nothing()"


def test_a_value_that_does_not_equal_itself_is_compared_as_in_a_tuple():
    nan = float("nan")
    for cls in (Pair, PlainPair):
        assert cls(nan) == cls(nan) and cls(nan) != cls(float("nan"))


@BOTH
def test_the_many_are_made_as_the_few(cls):
    for i in range(FEW + 3):
        assert cls(i, span="here") == cls(left=i) and cls(i).notes == [] and cls(i, notes=[1]).notes == [1]
    with pytest.raises(TypeError, match="left"):
        cls()


def test_init_is_compiled_where_objects_are_many():
    @frozen
    class Late:
        x: int

    first = Late.__init__
    made = [Late(i) for i in range(FEW)]
    assert Late.__init__ is first
    assert Late(FEW).x == FEW and Late.__init__ is not first and Late(x=3).x == 3 and [m.x for m in made] == list(range(FEW))


@pytest.mark.parametrize("base, decorate", [(Pair, dataclass(frozen=True)), (PlainPair, frozen), (Pair, frozen), (PlainPair, dataclass(frozen=True))])
def test_either_inherits_from_either(base, decorate):
    """A plugin's class may be a plain one."""

    @decorate
    class Sub(base):
        more: int = 7

    x = Sub(1, (2,), more=3)
    assert (x.left, x.right, x.notes, x.more, x.span) == (1, (2,), [], 3, None) and Sub(1).more == 7
    assert x == replace(Sub(1, (2,)), more=3) and x != Sub(1, (2,)) and base(1, (2,)) != x
    with pytest.raises(FrozenInstanceError):
        x.left = 2
    with pytest.raises(FrozenInstanceError):
        x.more = 2
    with pytest.raises(TypeError, match="frozen"):

        @dataclass
        class Thawed(base):
            pass


def test_without_slots_there_is_room_for_more():
    @frozen(slots=False, kw_only=True)
    class Open(PlainBase):
        x: int = 3

    assert Open().x == 3 and vars(Open(x=4)) == {"x": 4}
    assert [Open(x=i).x for i in range(FEW + 2)] == list(range(FEW + 2))
    assert copy.deepcopy(Open(x=5)) == Open(x=5)


@thawed
class Count:
    of: str
    n: int = 0
    seen: list = field(default_factory=list)
    _left: int = field(init=False, default=3)


@dataclass(slots=True)
class PlainCount:
    of: str
    n: int = 0
    seen: list = field(default_factory=list)
    _left: int = field(init=False, default=3)


@pytest.mark.parametrize("cls", [Count, PlainCount], ids=["thawed", "dataclass"])
def test_what_is_thawed_changes_and_is_compared_by_its_fields(cls):
    for i in range(FEW + 3):
        x = cls("a", n=i)
        x.n += 1
        assert x == cls("a", i + 1) and x != cls("b", i + 1) and x != ("a", i + 1, [], 3) and (x.seen, x._left) == ([], 3)
    assert repr(cls("a")) == f"{cls.__qualname__}(of='a', n=0, seen=[], _left=3)" and replace(cls("a"), n=2).n == 2
    assert not hasattr(cls("a"), "__dict__") and copy.deepcopy(cls("a", 2)) == cls("a", 2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(cls("a"))
    with pytest.raises(TypeError):
        cls("a", 1, [], 3)
    with pytest.raises(AttributeError):
        cls("a").other = 1


@pytest.mark.parametrize("decorate", [frozen(eq=False), thawed(eq=False)])
def test_without_comparison_each_object_is_one(decorate):
    @decorate
    class One:
        x: int

    assert One(1) != One(1) and len({One(1), One(1)}) == 2 and repr(One(1)).endswith("One(x=1)")


#: Rooms that each check loads.
LOADED = ("check", "derive", "diagnostics", "elaborate", "facts", "ir", "lower", "plugins", "primitive", "prove", "rules", "syntax")


@pytest.mark.parametrize("room", LOADED)
def test_a_check_compiles_no_methods_of_classes_that_it_may_not_use(room):
    plain = [f"{p.name}: {line}" for p in (CORE / room).rglob("*.py") for line in p.read_text().splitlines() if line.startswith("@dataclass")]
    assert plain == [], "@frozen or @thawed: docs/decisions/0038"
