from __future__ import annotations

from stockade.platforms.linux import bubblewrap


def test_the_words_in_whole() -> None:
    assert bubblewrap.through("/usr/bin/bwrap", ["python", "-c", "pass", "--", "x"]) == [
        "/usr/bin/bwrap",
        "--unshare-user",
        "--dev-bind",
        "/",
        "/",
        "--",
        "python",
        "-c",
        "pass",
        "--",
        "x",
    ]


def test_only_places_that_no_user_can_write_count() -> None:
    assert all(path.startswith(("/usr/", "/bin/")) for path in bubblewrap.PLACES)
