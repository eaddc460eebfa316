from __future__ import annotations

from stockade.tool.approval import ApprovalMode, Terms
from stockade.tool.inheritance import Inheritance


def test_a_child_inherits_all_but_the_bypass() -> None:
    terms = Terms(ApprovalMode.PROMPT, skip_permissions=True, check_injection=False)
    parent = Inheritance(terms=terms)
    child = parent.child("tests")
    assert (parent.may_bypass, parent.is_child) == (True, False)
    assert child == Inheritance("tests", terms, may_bypass=False)
    assert child.is_child


def test_nor_does_a_childs_child_whatever_it_is_called() -> None:
    grandchild = Inheritance().child("a").child("")
    assert grandchild == Inheritance("a/sub-agent", Terms(), may_bypass=False)
