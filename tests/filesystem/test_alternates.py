from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from stockade.filesystem.alternates import Alternates, reach_of

if TYPE_CHECKING:
    from pathlib import Path

ANYWHERE = frozenset({"/"})


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


def test_the_reach_of_a_list_goes_through_links_and_other_lists(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    one, other, third, last = (f"{root}/{name}" for name in ("one", "other", "third", "last"))
    for place in (one, other, third, last):
        os.makedirs(f"{place}/info")
        os.makedirs(f"{place}/pack")
    assert reach_of(one) == frozenset()
    (root / "link").symlink_to("other")
    (root / "one/info/alternates").write_text(f"{root}/link\n")
    assert reach_of(one) == {other}
    (root / "other/info/alternates").write_text("../third\n")
    assert reach_of(one) == {other, third}
    (root / "third/ab").symlink_to(f"{last}/pack")
    (root / "third/pack/x.pack").symlink_to("/etc/passwd")
    assert reach_of(one) == {other, third, f"{last}/pack", "/etc/passwd"}
    (root / "third/info/alternates").write_text(f"{one}\n")
    assert reach_of(one) == {other, third, f"{last}/pack", "/etc/passwd", one}


def test_what_cannot_be_told_leads_anywhere(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "info").mkdir()
    listed = root / "info/alternates"
    for text in ('"quoted"\n', "a\0b\n", "down/../up\n", "x" * 70_000):
        listed.write_text(text)
        assert reach_of(str(root)) == ANYWHERE, text[:10]
    listed.unlink()
    os.mkfifo(listed)
    assert reach_of(str(root)) == ANYWHERE
    listed.unlink()
    listed.write_text("\n".join(f"{root}/{number}" for number in range(101)))
    assert reach_of(str(root)) == ANYWHERE
    for number in range(7):
        (root / f"deep{number}/info").mkdir(parents=True)
        (root / f"deep{number}/info/alternates").write_text(f"{root}/deep{number + 1}\n")
    assert reach_of(f"{root}/deep0") == ANYWHERE
    assert reach_of(f"{root}/deep3") == {f"{root}/deep{number}" for number in range(4, 8)}


def test_a_list_that_leads_elsewhere_now_is_found_and_the_host_may_do_that(tmp_path: Path) -> None:
    store, other = stores_in(tmp_path.resolve(), 2)
    (tmp_path / "link").symlink_to(other)
    with open(f"{store}/objects/info/alternates", "w", encoding="ascii") as file:
        file.write(f"{tmp_path.resolve()}/link\n")
    known = Alternates()
    known.know([store])
    assert known.changed({store}) == []
    assert not known.leads_elsewhere(f"{store}/objects", reach_of(f"{store}/objects"))
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("/etc")
    assert known.changed({store}) == [store]
    assert known.leads_elsewhere(f"{store}/objects", reach_of(f"{store}/objects"))
    assert not known.leads_elsewhere(f"{other}/objects", reach_of(f"{other}/objects"))
    known.begin()
    assert known.changed({store}) == []
