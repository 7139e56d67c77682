"""`python -m cake_core.rules.store`: read the built-in packs and write what is made of them, for `stored.py`."""

from __future__ import annotations

import json
from dataclasses import fields, replace

from cake_core.rules.packfile import load_pack
from cake_core.rules.packs import offers
from cake_core.rules.schema import Pack
from cake_core.rules.stored import CLASSES, FILE, head


def written(pack: Pack, shown: str) -> str:
    """The text that `stored` reads."""
    rules = tuple(replace(r, path=r.path.parent.name) for r in pack.rules)
    objects = json.dumps(packed(replace(pack, folder=None, rules=rules, distribution="")), separators=(",", ":")) + "\n"
    return json.dumps(head(pack.folder, shown, objects)) + "\n" + objects


def packed(root: object) -> list:
    """An object as the list of all that it consists of, itself last."""
    out: list = []
    places: dict[tuple, int] = {}
    kinds = {cls: n for n, cls in enumerate(CLASSES)}

    def place(x: object) -> int:
        cls = x.__class__
        kind = kinds.get(cls)
        if kind is None:
            key, item = (cls, x), x
        else:
            key = item = (kind, *map(place, _parts(x, cls)))
        if key not in places:
            places[key] = len(out)
            out.append(list(item) if kind is not None else item)
        return places[key]

    place(root)
    return out


def _parts(x, cls: type):
    if cls is tuple:
        return x
    if cls is frozenset:
        return sorted(x)
    if cls is dict:
        return [y for pair in x.items() for y in pair]
    if issubclass(cls, str):
        return (str(x),)
    return [getattr(x, f.name) for f in fields(cls)]


def main() -> None:
    for offer in offers():
        if offer.ours:
            pack = load_pack(offer.folder, offer.package, offer.distribution)
            (offer.folder / FILE).write_text(written(pack, offer.package), encoding="utf-8")


if __name__ == "__main__":
    main()
