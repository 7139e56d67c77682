"""The page in a real browser without a screen: nothing overlaps or leaves its place, curves meet what they connect, and clicks and keys do what they should."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from html import unescape
from pathlib import Path

import pytest

from cake_core.show import page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser is on this machine")

LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
FIRST = "window.seenErrors = []; addEventListener('error', (e) => seenErrors.push(e.message)); addEventListener('securitypolicyviolation', (e) => seenErrors.push(e.violatedDirective));"


def look(html: str, folder: Path, width: int, height: int, dark: bool = False) -> tuple[dict, bytes]:
    """(what was seen, the picture as PNG) in a window of that size."""
    at = folder / "page.html"
    at.write_text(
        html.replace("<body>", f"<body><script>{FIRST}</script>", 1).replace("</body>", f"<script>{LOOKS}</script></body>", 1), encoding="utf-8"
    )
    shot = folder / "page.png"
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
    ]
    flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [BROWSER, *flags, f"--screenshot={shot}", "--dump-dom", at.as_uri()], capture_output=True, text=True, timeout=100, check=True
    )
    seen = done.stdout.partition('<pre id="seen" hidden="">')[2].partition("</pre>")[0]
    assert seen, done.stderr[-2000:]
    return json.loads(unescape(seen)), shot.read_bytes()


MANY = 40


def colours(png: bytes) -> set[bytes]:
    """Colours of every 7th pixel of an 8-bit RGB or RGBA picture, from above until there are MANY (PNG, W3C, 2nd edition: chunks, filters)."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind in (2, 6)) == (8, True)
    data, at = b"", 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        data += png[at + 8 : at + 8 + size] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += size + 12
    raw, n = zlib.decompress(data), 3 if kind == 2 else 4
    found, before, stride = set(), bytearray(width * n), width * n + 1
    for y in range(height):
        how, row = raw[y * stride], bytearray(raw[y * stride + 1 : (y + 1) * stride])
        if how:
            for i, x in enumerate(row):
                a, b, c = row[i - n] if i >= n else 0, before[i], before[i - n] if i >= n else 0
                p = a + b - c
                near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                row[i] = (x + (0, a, b, (a + b) // 2, near)[how]) & 255
        before = row
        found |= {bytes(row[i : i + 3]) for i in range(0, len(row), 7 * n)}
        if len(found) > MANY:
            break
    return found


def sound(seen: dict) -> None:
    assert seen["errors"] == []
    assert seen["wide"][0] <= seen["wide"][1], "the page scrolls sideways"
    assert seen["clipped"] == []
    assert all(seen["strips"])


def test_a_wide_window(zoo, tmp_path):
    p = zoo("gemm/gemm_sm90")
    seen, png = look(page(p), tmp_path, 1400, 800)
    sound(seen)
    trace = p.timeline.trace
    assert seen["columns"] == 2, "text and pictures stand side by side"
    assert seen["back"] == "rgb(251, 251, 250)"
    assert (seen["slices"], seen["off"], seen["over"]) == (len(trace.slices), [], [])
    assert seen["curves"] > 40 and seen["loose"] == 0
    lit, of, dim, told = seen["line"]
    assert lit == of > 20 and dim and told.startswith("line ") and f"{of} events" in told
    assert seen["cleared"] == [0, "Point at something, or go through it with the arrow keys."]
    told, title, other, together, hot = seen["pinned"]
    assert title in told and f"lets go on: {other}" in told and together and hot >= 1 and len(seen["its"]) == 1
    assert seen["stops"] == 1 and seen["end"] == [True, 1, True] and seen["down"] and seen["chosen"]
    before, more, fit, there = seen["zoom"]
    assert more > before * 1.2 and fit <= there + 1 and seen["hidden"]
    assert len(colours(png)) > MANY


def test_a_narrow_window_in_the_dark(zoo, tmp_path):
    """What is most crowded: many slots, tensor memory, one column."""
    p = zoo("gemm/gemm_sm100_nvf4")
    seen, png = look(page(p), tmp_path, 520, 900, dark=True)
    sound(seen)
    assert seen["columns"] == 1 and seen["back"] == "rgb(20, 23, 27)"
    assert (seen["slices"], seen["off"], seen["over"], seen["loose"]) == (len(p.timeline.trace.slices), [], [], 0)
    assert len(seen["strips"]) == 2
    assert len(colours(png)) > MANY


def test_findings_and_who_is_stuck(stuck, tmp_path):
    seen, _ = look(page(stuck), tmp_path, 1300, 700)
    sound(seen)
    assert (seen["off"], seen["over"], seen["loose"]) == ([], [], 0)
