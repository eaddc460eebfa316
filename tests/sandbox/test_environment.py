from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.environment import CACHES, PRIVATE, _unstamped, dropped, inside, long_lived

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "BASH_FUNC_ls%%",
        "PROMPT_COMMAND",
        "PERL5OPT",
        "PYTHONSTARTUP",
        "RUBYOPT",
        "HTTP_PROXY",
        "https_proxy",
        "No_Proxy",
    ],
)
def test_injecting_variables_and_proxies_stay_outside(name: str) -> None:
    assert dropped(name)
    assert name not in inside({name: "x"}, "/t")


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK", "NODE_OPTIONS", "ENVOY"])
def test_the_rest_gets_in(name: str) -> None:
    assert inside({name: "x"}, "/t")[name] == "x"


def test_what_the_sandbox_tells() -> None:
    told = inside({"TMPDIR": "/host"}, "/t")
    assert told["SANDBOX_RUNTIME"] == "1"
    assert {told[name] for name in ("TMPDIR", "TMP", "TEMP")} == {"/t"}
    assert {told[name] for name in CACHES} == {f"/t/cache/{folder}" for folder in CACHES.values()}


def test_a_cache_that_the_user_chose_stays() -> None:
    assert inside({"PIP_CACHE_DIR": "/mine"}, "/t")["PIP_CACHE_DIR"] == "/mine"


def test_what_the_caller_names_counts_most() -> None:
    assert inside({"A": "1"}, "/t", {"A": "2", "LD_PRELOAD": "x"})["A"] == "2"
    assert inside({}, "/t", {"LD_PRELOAD": "x"})["LD_PRELOAD"] == "x"


def test_our_proxies_count_more_than_the_hosts_and_the_callers_most() -> None:
    host = {"HTTP_PROXY": "http://bob:S3cretPw@corp:3128", "MY_PW": "S3cretPw", "MYPROXY": "bob:S3cretPw@corp"}
    ours = {"HTTP_PROXY": "http://c:t@localhost:1", "MYPROXY": "http://c:t@localhost:1"}
    told = inside(host, "/t", ours)
    assert ours.items() <= told.items()
    assert "MY_PW" not in told
    assert host.items() <= inside(host, "/t", ours, host).items()


def _nowhere(path: str) -> bool:
    return not path


def test_variables_of_a_private_cache() -> None:
    found = long_lived({}, "/c", _nowhere)
    assert {name: found[name] for name in PRIVATE} == {
        name: f"/c/{folder}" if folder else "/c" for name, folder in PRIVATE.items()
    }
    assert found["CHROME_CONFIG_HOME"] == "/c/chrome-config"
    assert found["MAVEN_OPTS"] == "-Dmaven.repo.local=/c/maven"
    assert found["UV_LINK_MODE"] == "copy"


def test_what_the_user_set_stays_if_commands_can_write_it_or_it_names_no_place() -> None:
    kept = {"PIP_CACHE_DIR": "/w/pip", "CARGO_HOME": "/home/ada/.cargo", "PLAYWRIGHT_BROWSERS_PATH": "0", "GOCACHE": ""}
    found = long_lived(kept, "/c", lambda path: path.startswith("/w/"))
    assert "PIP_CACHE_DIR" not in found
    assert "PLAYWRIGHT_BROWSERS_PATH" not in found
    assert (found["CARGO_HOME"], found["GOCACHE"]) == ("/c/cargo", "/c/go-build")


@pytest.mark.parametrize(
    ("options", "cache", "expected"),
    [
        ("-Xmx1g", "/c", "-Xmx1g -Dmaven.repo.local=/c/maven"),
        ("-Dmaven.repo.local=/mine", "/c", None),
        ("", "/with blank", None),
    ],
)
def test_mavens_options_are_extended(options: str, cache: str, expected: str | None) -> None:
    assert long_lived({"MAVEN_OPTS": options}, cache, _nowhere).get("MAVEN_OPTS") == expected


def test_condas_own_packages_can_still_be_read() -> None:
    found = long_lived({"CONDA_EXE": "/opt/conda/bin/conda"}, "/c", _nowhere)
    assert found["CONDA_PKGS_DIRS"] == "/c/conda,/opt/conda/pkgs"


@pytest.mark.parametrize(
    ("made", "flags", "expected"),
    [
        ((), "", {"GOFLAGS": "-buildvcs=false"}),
        ((), "-mod=mod", {"GOFLAGS": "-mod=mod -buildvcs=false"}),
        ((), "-buildvcs=true", {}),
        ((".git/",), "", {"GOFLAGS": "-buildvcs=false"}),
        ((".git/", ".git/HEAD"), "", {}),
        ((".git",), "", {}),
    ],
)
def test_go_asks_git_only_where_there_is_a_repository(
    tmp_path: Path, made: tuple[str, ...], flags: str, expected: dict[str, str]
) -> None:
    for name in made:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    assert _unstamped({"GOFLAGS": flags} if flags else {}, str(tmp_path)) == expected
