"""Variables by which programs find the sandbox's proxies.

Rules:

- names in both cases where programs differ; the HTTP proxy for everything, ``ALL_PROXY`` too: CONNECT carries any
  TCP, while a SOCKS address there makes programs fail that never needed it (httpx, and so the SDKs built on it, ask
  for a package that is not installed). SOCKS is named where a program can do nothing else with a proxy: FTP;
- only what is inside is reached without a proxy. Each entry is one that httpx, Go, curl, Node and Java can read: no
  brackets, no stars;
- user and token consist of letters, digits, ``-`` and ``_``, so that no program and no shell quotes them differently;
- a program's own setting wins over its configuration file (npm, pip, cargo, yarn): a company's proxy in there cannot
  be reached from inside, and ours takes its place;
- ssh needs a program that speaks to the proxy: ``ssh_proxy_command``. The credential reaches it by the environment;
- ``JAVA_TOOL_OPTIONS`` makes each JVM print a line and Java does not send credentials by itself, so it is only set
  where connections are not carried transparently anyway.

These variables open nothing: without them there is no other way out.

Source of truth: the manual of each program; for the lower-case-only readers: curl, gRPC, npm.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST: Final = "127.0.0.1"
_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
#: Reached without a proxy: the session's own localhost.
DIRECT: Final = ("localhost", ".localhost", "127.0.0.1", "127.0.0.0/8", "::1")
_HTTP_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY")
#: ``VARIABLE`` of ``ssh_proxy_command``, a program of its own that nothing here needs to load.
_SSH_VARIABLE: Final = "STOCKADE_PROXY"
_OWN_HTTP_VARIABLES: Final = (
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "npm_config_https_proxy",
    "npm_config_proxy",
    _SSH_VARIABLE,
)
_SHELL_SAFE: Final = _SAFE | frozenset("/.,:=+@")


class Credential(Value):
    """What binds a connection to the command that makes it. The token is not shown."""

    user: str
    token: str

    def check(self) -> None:
        """Refuse characters that some program would have to quote."""
        if not self.user or not self.token or not _SAFE.issuperset(self.user + self.token):
            message = "a proxy credential has characters other than letters, digits, - and _"
            raise InvalidTextError(message, "make it with secrets.token_urlsafe")

    def __repr__(self) -> str:
        """Show whose it is, and no more."""
        return f"Credential(user={self.user!r}, token=...)"


class ProxyPorts(Value):
    """The ports, inside, at which the proxies listen."""

    http: int = 3128
    socks: int = 1080


def proxy_variables(
    ports: ProxyPorts,
    credential: Credential | None,
    host: Mapping[str, str],
    *,
    transparent: bool = False,
    python: str = sys.executable,
) -> dict[str, str]:
    """Return the variables of one command.

    ``credential`` is ``None`` where the proxies are not ours; ``host`` is the environment that the command would
    have, without what tells of the host's proxies, for two variables are added to and not replaced; ``transparent``
    says that connections are carried without variables as well; ``python`` is the interpreter, as it is found inside.
    """
    secret = "" if credential is None else f"{credential.user}:{credential.token}@"
    http = f"http://{secret}{_HOST}:{ports.http}"
    socks = f"socks5h://{secret}{_HOST}:{ports.socks}"
    found = _both_cases(dict.fromkeys(_HTTP_VARIABLES, http) | {"FTP_PROXY": socks, "NO_PROXY": ",".join(DIRECT)})
    found |= dict.fromkeys(_OWN_HTTP_VARIABLES, http)
    found |= {
        "RSYNC_PROXY": f"{secret}{_HOST}:{ports.http}",
        "npm_config_noproxy": ",".join(DIRECT),
        "NODE_USE_ENV_PROXY": "1",
        "GIT_SSH_COMMAND": _ssh_command(host.get("GIT_SSH_COMMAND") or "ssh", python),
        "STOCKADE_HOST_HTTP_PROXY_PORT": str(ports.http),
        "STOCKADE_HOST_SOCKS_PROXY_PORT": str(ports.socks),
    }
    found |= _cloud_sdk(ports, credential)
    if not transparent:
        found["JAVA_TOOL_OPTIONS"] = _java_options(ports, host.get("JAVA_TOOL_OPTIONS", ""))
    return found


def _both_cases(variables: Mapping[str, str]) -> dict[str, str]:
    return {spelt: value for name, value in variables.items() for spelt in (name, name.lower())}


def _cloud_sdk(ports: ProxyPorts, credential: Credential | None) -> dict[str, str]:
    found = {
        "CLOUDSDK_PROXY_TYPE": "http",
        "CLOUDSDK_PROXY_ADDRESS": _HOST,
        "CLOUDSDK_PROXY_PORT": str(ports.http),
    }
    if credential is not None:
        found |= {"CLOUDSDK_PROXY_USERNAME": credential.user, "CLOUDSDK_PROXY_PASSWORD": credential.token}
    return found


def _java_options(ports: ProxyPorts, before: str) -> str:
    options = [before] if before else []
    for scheme in ("http", "https"):
        options += [f"-D{scheme}.proxyHost={_HOST}", f"-D{scheme}.proxyPort={ports.http}"]
    options.append("-Dhttp.nonProxyHosts=localhost|*.localhost|127.*|[::1]")
    return " ".join(options)


def _ssh_command(ssh: str, python: str) -> str:
    """Return how git starts ssh: a shell reads it, ssh reads the option in it, and another shell what that says."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ssh_proxy_command.py")
    words = " ".join(_quoted(word.replace("%", "%%")) for word in (python, "-I", "-S", script))
    return f"{ssh} -o {_quoted(f'ProxyCommand={words} %h %p')}"


def _quoted(word: str) -> str:
    """Quote for a POSIX shell, as ``shlex.quote`` does, which costs more to import than all of this."""
    if word and _SHELL_SAFE.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
