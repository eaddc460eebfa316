from __future__ import annotations

import pytest

from stockade.errors import LockedError
from stockade.settings.catalog import DENIED_DOMAINS, DENY, ENABLED, HTTP_PROXY_PORT, SOCKS_PROXY_PORT
from stockade.settings.document import Document
from stockade.settings.foreign_proxy import find_deny, require_ours, without_foreign_proxy
from stockade.settings.layer import Layer, Origin
from stockade.settings.merge import EMPTY, merge

DENYING = Origin(Layer.POLICY, "/etc/p.json", DENIED_DOMAINS.path)
PORTS = {HTTP_PROXY_PORT.name: 8080, SOCKS_PROXY_PORT.name: 8081}


@pytest.mark.parametrize(
    ("values", "path"),
    [
        pytest.param({DENIED_DOMAINS.name: ("a.example",)}, DENIED_DOMAINS.path, id="a list"),
        pytest.param({DENIED_DOMAINS.name: ()}, None, id="an empty list"),
        pytest.param({DENY.name: ("Read(./x)", "WebFetch(domain:a.example)")}, DENY.path, id="a rule"),
        pytest.param({DENY.name: (" webfetch:domain:a.example",)}, DENY.path, id="a rule in another spelling"),
        pytest.param({DENY.name: ("WebFetch",)}, DENY.path, id="all of it"),
        pytest.param({DENY.name: ("Edit(./WebFetch)",)}, None, id="another rule"),
    ],
)
@pytest.mark.parametrize("layer", list(Layer))
def test_where_the_policy_denies_domains(layer: Layer, values: dict[str, object], path: str | None) -> None:
    found = find_deny([Document(layer, "/etc/p.json", values)])
    expected = path is not None and layer is Layer.POLICY
    assert found == (Origin(layer, "/etc/p.json", path or "") if expected else None)


@pytest.mark.parametrize("layer", [Layer.PROJECT, Layer.USER, Layer.LOCAL, Layer.FLAG])
def test_a_lower_file_names_no_proxy(layer: Layer) -> None:
    document = Document(layer, "/u.json", {ENABLED.name: True, **PORTS})
    kept, warning = without_foreign_proxy(document, DENYING)
    assert kept == document.but(values={ENABLED.name: True})
    assert warning == (
        "/u.json: ignored: sandbox.network.httpProxyPort, sandbox.network.socksProxyPort; /etc/p.json (policy) denies "
        "domains, and a proxy of somebody else does not know them"
    )


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(Document(Layer.POLICY, "/etc/p.json", PORTS), id="the policy itself may"),
        pytest.param(Document(Layer.COMMAND_LINE, "", PORTS), id="the command line is refused aloud"),
        pytest.param(Document(Layer.USER, "/u.json", {ENABLED.name: True}), id="no proxy"),
    ],
)
def test_others_are_left_as_they_are(document: Document) -> None:
    assert without_foreign_proxy(document, DENYING) == (document, "")


@pytest.mark.parametrize("name", PORTS)
def test_the_command_line_names_no_proxy_but_the_policys(name: str) -> None:
    document = Document(Layer.COMMAND_LINE, "/given.json", {name: 9})
    require_ours(document, None, EMPTY)
    require_ours(document, DENYING, merge([Document(Layer.POLICY, "/etc/p.json", {name: 9})]))
    for below in (EMPTY, merge([Document(Layer.POLICY, "/etc/p.json", {name: 10})])):
        with pytest.raises(LockedError, match=rf"/given.json sets {name}, but /etc/p.json \(policy\) denies domains"):
            require_ours(document, DENYING, below)
