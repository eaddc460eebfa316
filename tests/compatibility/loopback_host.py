"""The servers that workflows talk to, on one port of loopback: package indexes, git over HTTP, a Maven repository."""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import os
import re
import subprocess
import tarfile
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from types import TracebackType

MAVEN = Path("/usr/share/maven-repo")


@cache
def _manifest(tarball: Path) -> dict[str, Any]:
    with tarfile.open(tarball) as archive:
        member = archive.extractfile("package/package.json")
        assert member is not None
        return dict(json.load(member))


@cache
def _hashes(tarball: Path) -> dict[str, str]:
    content = tarball.read_bytes()
    return {
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
        "shasum": hashlib.sha1(content, usedforsecurity=False).hexdigest(),
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LoopbackHost

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the name that the base class gives it
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        first, _, rest = path.lstrip("/").partition("/")
        serve = {"simple": self._index, "npm": self._package, "git": self._git, "maven": self._maven}.get(first)
        if first == "files":
            self._file(self.server.wheels, rest)
        elif serve:
            serve(rest)
        else:
            self._answer(b"hello from the host\n", "text/plain")

    def do_POST(self) -> None:
        first, _, rest = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if first == "git":
            self._git(rest)
        else:
            self._answer(b"", "text/plain", 404)

    def _answer(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _file(self, folder: Path, name: str) -> None:
        path = folder / name
        if ".." in name or not path.is_file():
            self._answer(b"", "text/plain", 404)
        else:
            self._answer(path.read_bytes(), mimetypes.guess_type(name)[0] or "application/octet-stream")

    def _index(self, rest: str) -> None:
        wanted = re.sub(r"[-_.]+", "-", rest.strip("/")).lower()
        wheels = [
            name
            for name in sorted(os.listdir(self.server.wheels))
            if re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower() == wanted
        ]
        links = "".join(
            f'<a href="/files/{name}#sha256={hashlib.sha256((self.server.wheels / name).read_bytes()).hexdigest()}">'
            f"{name}</a>\n"
            for name in wheels
        )
        self._answer(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html", 200 if links else 404)

    def _package(self, rest: str) -> None:
        if rest.startswith("-/"):
            self._file(self.server.packages, rest[2:])
            return
        manifests = {path: _manifest(path) for path in sorted(self.server.packages.glob("*.tgz"))}
        versions = {
            manifest["version"]: {
                **manifest,
                "dist": {"tarball": f"{self.server.url}/npm/-/{path.name}", **_hashes(path)},
            }
            for path, manifest in manifests.items()
            if manifest["name"] == rest
        }
        document = {"name": rest, "versions": versions, "dist-tags": {"latest": max(versions, default="")}}
        self._answer(json.dumps(document).encode(), "application/json", 200 if versions else 404)

    def _maven(self, rest: str) -> None:
        """Serve Debian's repository, which has one version of each artifact: it stands for those that others name."""
        folder, version, name = (*rest.rsplit("/", 2), "", "")[:3]
        if not (MAVEN / rest).is_file() and name.endswith((".jar", ".pom")):
            suffix = name[-4:]
            there = sorted((MAVEN / folder).glob(f"*/*{suffix}"))
            rest = str(there[-1].relative_to(MAVEN)) if there and version else rest
        self._file(MAVEN, rest)

    def _git(self, rest: str) -> None:
        """Let git's own program answer, which speaks CGI."""
        body = self._body()
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": f"/{rest}",
            "QUERY_STRING": urlsplit(self.path).query,
            "REQUEST_METHOD": self.command,
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": "ada",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self._answer(content, headers.get("Content-Type", "text/plain"), status)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


class LoopbackHost(ThreadingHTTPServer):
    """A host of its own, as a context: wheels and npm's packages of two directories, repositories of a third."""

    daemon_threads = True

    def __init__(self, wheels: Path, packages: Path, repositories: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheels, self.packages, self.repositories = wheels, packages, repositories

    @property
    def address(self) -> str:
        """Return host and port, as a rule names them."""
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        """Return the beginning of every address here."""
        return f"http://{self.address}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
