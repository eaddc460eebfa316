from __future__ import annotations

from stockade.filesystem.plan import Mount, Operation, Placeholder, Plan


def test_a_plan_is_printed_line_by_line() -> None:
    plan = Plan(
        mounts=(Mount(Operation.WRITABLE, "/w", "why"), Mount(Operation.HIDDEN, '/w/"\x1b', "so")),
        placeholders=(Placeholder("/w/.bashrc", "kept", "/w"),),
        notes=("a note",),
        refusals=("a refusal",),
    )
    assert str(plan).splitlines() == [
        'read-only "/": everything, but for what follows',
        'writable  "/w": why',
        'hidden    "/w/\\"\\x1b": so',
        'absent    "/w/.bashrc": kept',
        "note      a note",
        "refused   a refusal",
    ]
