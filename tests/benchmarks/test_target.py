from __future__ import annotations

from target import Target, judge

SIZES = (3, 300)


def _flat(milliseconds: float) -> dict[int, float]:
    return dict.fromkeys(SIZES, milliseconds / 1000)


def test_all_met() -> None:
    medians = {
        "bare": _flat(1),
        "bare-asyncio": _flat(3.5),
        "stockade": {3: 0.003, 300: 0.0033},
        "stockade-cli": _flat(40),
        "srt": _flat(66),
        "srt-cli": _flat(400),
        "sandlock": _flat(6.6),
        "bwrap": _flat(33),
    }
    assert judge(medians, SIZES) == [
        Target("library above bare posix_spawn: at most 3 ms", ("+2.00 ms", "+2.30 ms"), True),
        Target("library above bare asyncio: at most 3 ms", ("-0.50 ms", "-0.20 ms"), True),
        Target("library against 3 repositories: at most 1.3x", ("1.00x", "1.10x"), True),
        Target("srt library / library: at least 10", ("22.0x", "20.0x"), True),
        Target("sandlock / library: above 1", ("2.2x", "2.0x"), True),
        Target("bwrap / library: above 1", ("11.0x", "10.0x"), True),
        Target("srt command line / command line: at least 5", ("10.0x", "10.0x"), True),
    ]


def test_one_size_that_misses_is_a_miss() -> None:
    medians = {"bare": _flat(1), "stockade": {3: 0.003, 300: 0.0051}, "sandlock": _flat(5), "srt": _flat(50)}
    met = {target.text: target.met for target in judge(medians, SIZES)}
    assert met == {
        "library above bare posix_spawn: at most 3 ms": False,
        "library above bare asyncio: at most 3 ms": None,
        "library against 3 repositories: at most 1.3x": False,
        "srt library / library: at least 10": False,
        "sandlock / library: above 1": False,
        "bwrap / library: above 1": None,
        "srt command line / command line: at least 5": None,
    }


def test_a_missing_side_is_said() -> None:
    rows = [target.row() for target in judge({"bare": _flat(1)}, SIZES)]
    assert {tuple(row[1:]) for row in rows} == {("-", "-", "not measured")}
