from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from stockade.filesystem.alternates import _AT_ONCE, Alternates

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
    assert known.changed(whole=True) == []
    put_list(came)
    os.unlink(f"{went}/objects/info/alternates")
    time.sleep(0.02)
    put_list(changed)
    assert sorted(known.changed(whole=True)) == sorted([came, went, changed])
    status = os.stat(f"{came}/objects/info/alternates")
    assert known.is_another(f"{came}/objects", status)
    assert not known.is_another(f"{stayed}/objects", os.stat(f"{stayed}/objects/info/alternates"))
    assert not known.is_another("/unknown/objects", status)


def test_what_was_looked_at_is_known_and_what_comes_back_later_too(tmp_path: Path) -> None:
    (store,) = stores_in(tmp_path, 1)
    known = Alternates()
    known.know([store])
    put_list(store)
    found = known.changed(whole=True)
    os.unlink(f"{store}/objects/info/alternates")  # it is set aside
    known.settle(found)
    assert known.changed(whole=True) == []
    put_list(store)  # the user takes it back
    known.begin()
    assert known.changed(whole=True) == []


def test_what_is_known_stays_until_the_repository_goes(tmp_path: Path) -> None:
    (store,) = stores_in(tmp_path, 1)
    known = Alternates()
    known.know([store])
    put_list(store)
    known.know([store])
    assert known.changed(whole=True) == [store]
    known.know([])
    known.know([store])
    assert known.changed(whole=True) == []


def test_of_many_each_has_its_turn_and_counts_since_the_last_one(tmp_path: Path) -> None:
    stores = stores_in(tmp_path, 50)
    known = Alternates()
    known.know(stores)
    before = time.time_ns()
    turns = -(-50 // _AT_ONCE)
    assert [known.changed(whole=False) for _ in range(turns)] == [[]] * turns
    for store in stores:
        put_list(store)
    found = [known.changed(whole=False) for _ in range(turns)]
    assert max(map(len, found)) < 50
    assert sorted(store for some in found for store in some) == stores
    assert known.since(time.time_ns()) < before
    assert known.changed(whole=True) == list(known._known)


def test_of_few_only_what_changed_since_the_command_started_counts(tmp_path: Path) -> None:
    known = Alternates()
    known.know(stores_in(tmp_path, 3))
    assert known.since(5) == 5
