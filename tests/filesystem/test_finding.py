from __future__ import annotations

from stockade.filesystem.finding import Memo, unseen


def test_what_was_not_looked_at_has_no_place_and_says_why() -> None:
    finding = unseen("there are too many")
    assert (finding.path, finding.kept, finding.failure) == ("", "", "there are too many")


def test_each_inspection_remembers_for_itself() -> None:
    one, other = Memo(), Memo()
    one.hasty.add("index")
    assert other.hasty == set()
    assert one.alternates is not other.alternates
