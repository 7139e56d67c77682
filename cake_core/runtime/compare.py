"""An output in guarded, poisoned memory, and its comparison with a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_core.runtime.device_array import DeviceArray, Memory
from cake_core.runtime.driver import Driver
from cake_core.runtime.elements import ELEMENTS, Element
from cake_core.runtime.host import to_float64
from cake_core.runtime.report import OutputReport

if TYPE_CHECKING:
    import numpy

GUARD = 4096  # bytes on either side; a multiple of every alignment that a kernel asks for
POISON = 0xFF  # every byte: a NaN in each float type, and one that no instruction produces
INTEGER_POISON = 0xA5  # every byte of an integer, for which -1 would be too common a result


def poison_of(elem: Element) -> int:
    """The byte that an output of this type is filled with before a launch."""
    return POISON if elem.lo is None else INTEGER_POISON


class Guarded:
    """One output: `array` between two guard bands, all bytes poison until the kernel (or `copy_from`) writes."""

    def __init__(self, shape: tuple[int, ...], elem: str, device: int, driver: Driver):
        nbytes = ELEMENTS[elem].bytes
        for extent in shape:
            nbytes *= extent
        self._memory = Memory(nbytes + 2 * GUARD, device, driver)
        self.poison = poison_of(ELEMENTS[elem])
        self.clear()
        self.array = DeviceArray(shape, elem, device, driver, self._memory, GUARD)

    def clear(self) -> None:
        """All bytes poison again."""
        self._memory.fill(self.poison)

    def guard_bytes(self) -> int:
        """Bytes of the bands that were changed. The upper band starts at the array's last byte, however small it is."""
        low = self._memory.read(self._memory.pointer, GUARD)
        high = self._memory.read(self._memory.pointer + GUARD + self.array.nbytes, GUARD)
        return sum(len(band) - band.count(self.poison) for band in (low, high))


def judge(name: str, guarded: Guarded, expected: numpy.ndarray | None, admitted: numpy.ndarray | None) -> OutputReport:
    """Compare elementwise in float64: wrong is what differs by more than `admitted`, or what nothing wrote; two NaNs, or equal
    infinities, agree."""
    import numpy as np

    array = guarded.array
    bits = array.numpy()
    guard = guarded.guard_bytes()
    words = np.ascontiguousarray(bits).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[array.elem.bytes])
    is_poison = words == int.from_bytes(bytes([guarded.poison] * array.elem.bytes), "little")
    if expected is None:
        return OutputReport(name, array.shape, array.elem.name, False, None, None, 0, int(is_poison.sum()), guard)
    got, expected = to_float64(bits, array.elem), np.asarray(expected, np.float64)
    if expected.shape != got.shape:
        raise ValueError(f"the reference of '{name}' has the shape {expected.shape}, the kernel's is {got.shape}")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        error = np.abs(got - expected)
        error[(got == expected) | (np.isnan(got) & np.isnan(expected) & ~is_poison)] = 0.0
        admitted = np.broadcast_to(np.asarray(admitted, np.float64), got.shape)
        # A bound that is relative to a value that is not finite says nothing: there only the same will do.
        wrong = ~((error == 0) | np.isfinite(expected) & (error <= admitted))
        ratio = np.where(error == 0, 0.0, error / admitted)
    finite = np.isfinite(ratio)
    counted = np.isfinite(error) & np.isfinite(expected)
    norm = float(np.linalg.norm(expected[counted]))
    first = np.argwhere(wrong)
    return OutputReport(
        name,
        array.shape,
        array.elem.name,
        True,
        float(ratio[finite].max()) if finite.any() else None,
        float(np.linalg.norm(error[counted])) / norm if norm else None,
        int(wrong.sum()),
        int(is_poison.sum()),
        guard,
        tuple(map(int, first[0])) if len(first) else None,
    )
