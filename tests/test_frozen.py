"""`@frozen` against `@dataclass(frozen=True, slots=True)`: the same class, but for when its methods are made."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace

import pytest

from cake_core.frozen import frozen


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
    for _ in range(2):  # before and after the first object
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


def test_init_is_compiled_for_the_first_object():
    @frozen
    class Late:
        x: int

    before = Late.__init__
    assert Late(3).x == 3 and Late.__init__ is not before and Late(x=4).x == 4
    assert Late.__init__.__qualname__.endswith("Late.__init__")


def test_a_plain_frozen_dataclass_does_not_inherit_from_one():
    """The core's classes are closed; those that plugins subclass are plain."""
    with pytest.raises(TypeError):

        @dataclass(frozen=True)
        class Sub(Pair):
            more: int = 0
