from __future__ import annotations

import pytest

from stockade.sandbox.environment import CACHES, dropped, inside


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
