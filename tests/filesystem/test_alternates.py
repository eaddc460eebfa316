from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from stockade.filesystem.alternates import Alternates

if TYPE_CHECKING:
    from pathlib import Path


def stores_in(folder: Path, count: int) -> list[str]:
    found = [folder / f"{number:03}/.git" for number in range(count)]
    for store in found:
        (store / "objects/info").mkdir(parents=True)
    return list(map(str, found))


def put_list(store: str) -> None:
    with open(f"{store}/objects/info/alternates", "w", encoding="ascii") as file:
        file.write("/elsewhere\n")


def test_a_list_that_came_went_or_changed_is_another(tmp_path: Path) -> None:
    came, went, changed, stayed = stores_in(tmp_path, 4)
    for store in (went, changed, stayed):
        put_list(store)
    known = Alternates()
    known.know([came, went, changed, stayed])
    assert known.changed() == []
    put_list(came)
    os.unlink(f"{went}/objects/info/alternates")
    time.sleep(0.02)
    put_list(changed)
    assert sorted(known.changed()) == sorted([came, went, changed])
    status = os.stat(f"{came}/objects/info/alternates")
    assert known.is_another(f"{came}/objects", status)
    assert not known.is_another(f"{stayed}/objects", os.stat(f"{stayed}/objects/info/alternates"))
    assert not known.is_another("/unknown/objects", status)


def test_what_was_looked_at_is_known_and_what_comes_back_later_too(tmp_path: Path) -> None:
    (store,) = stores_in(tmp_path, 1)
    known = Alternates()
    known.know([store])
    put_list(store)
    found = known.changed()
    os.unlink(f"{store}/objects/info/alternates")  # it is set aside
    known.settle(found)
    assert known.changed() == []
    put_list(store)  # the user takes it back
    known.begin()
    assert known.changed() == []


def test_what_is_known_stays_until_the_repository_goes(tmp_path: Path) -> None:
    (store,) = stores_in(tmp_path, 1)
    known = Alternates()
    known.know([store])
    put_list(store)
    known.know([store])
    assert known.changed() == [store]
    known.know([])
    known.know([store])
    assert known.changed() == []


def test_those_that_are_still_are_not_asked(tmp_path: Path) -> None:
    one, other = stores_in(tmp_path, 2)
    known = Alternates()
    known.know([one, other])
    put_list(one)
    put_list(other)
    assert known.changed({one}) == [other]
    known.settle([one, other])
    time.sleep(0.02)
    put_list(one)  # in the place of the old text: no name comes for that
    assert known.changed({one}) == [one]
