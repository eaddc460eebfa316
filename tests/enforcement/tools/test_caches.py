"""Package managers find in a new session what they fetched in an earlier one, and the user's own things besides."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import threading
import zipfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.enforcement.tools.conftest import Bench

MODULE = "example.test/tiny"
GO_MAIN = f'package main\nimport "{MODULE}"\nfunc main() {{ println(tiny.Text) }}\n'


class Registry:
    """A server on localhost that has packages for everybody, and counts what is fetched."""

    def __init__(self) -> None:
        self.fetched: Counter[str] = Counter()
        self.files: dict[str, bytes] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.fetched[self.path] += 1
                content = registry.files.get(self.path)
                self.send_response(200 if content is not None else 404)
                self.send_header("Content-Length", str(len(content or b"")))
                self.send_header("Cache-Control", "max-age=3600")
                kind = "application/json" if self.path == "/npm/tiny" else "text/html"
                self.send_header("Content-Type", kind if content and content[:1] in b"<{" else "application/gzip")
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *said: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.place = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.place}"
        self._fill()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _fill(self) -> None:
        wheel = "tiny-1.0-py3-none-any.whl"
        self.files["/simple/tiny/"] = f'<a href="{self.url}/wheels/{wheel}">{wheel}</a>'.encode()
        self.files[f"/wheels/{wheel}"] = _wheel()
        tarball = _tarball()
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        version = {
            "name": "tiny",
            "version": "1.0.0",
            "dist": {"tarball": f"{self.url}/npm/tiny-1.0.0.tgz", "integrity": integrity},
        }
        packument = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        self.files["/npm/tiny"] = json.dumps(packument).encode()
        self.files["/npm/tiny-1.0.0.tgz"] = tarball
        at = f"/go/{MODULE}/@v"
        self.files[f"{at}/list"] = b"v1.0.0\n"
        self.files[f"{at}/v1.0.0.info"] = b'{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}'
        self.files[f"{at}/v1.0.0.mod"] = f"module {MODULE}\n".encode()
        self.files[f"{at}/v1.0.0.zip"] = _zip(
            {
                f"{MODULE}@v1.0.0/go.mod": f"module {MODULE}\n",
                f"{MODULE}@v1.0.0/tiny.go": 'package tiny\nconst Text = "tiny runs"\n',
            }
        )


def _zip(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _wheel() -> bytes:
    info = "tiny-1.0.dist-info"
    return _zip(
        {
            "tiny.py": "print('tiny runs')\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": "",
        }
    )


def _tarball() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in {"package.json": '{"name":"tiny","version":"1.0.0"}', "index.js": ""}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()
    try:
        yield found
    finally:
        found.close()


def _session(bench: Bench, registry: Registry, line: str, environment: dict[str, str] | None = None) -> str:
    """Run a line in a session of its own that reaches the registry; return what it said."""
    policy = bench.policy(network__allowedDomains=(registry.place,))
    with BlockingSandbox(policy, environment=bench.environment | (environment or {})) as sandbox:
        done = sandbox.run(f"set -e\n{line}", timeout=200)
    assert done.exit_code == 0, f"{done.exit_code}\n{done.stdout!r}\n{done.stderr!r}"
    return done.output


def test_pip_fetches_a_wheel_once(tools_bench: Bench, registry: Registry) -> None:
    # Of a host that is not trusted, pip caches nothing that came by plain HTTP.
    line = (
        f"rm -rf env; {tools_bench.python} -m venv env; "
        f"env/bin/pip install -q --disable-pip-version-check --trusted-host {registry.place} "
        f"-i {registry.url}/simple tiny; env/bin/python -m tiny"
    )
    assert [_session(tools_bench, registry, line) for _ in range(2)] == ["tiny runs\n"] * 2
    assert registry.fetched["/wheels/tiny-1.0-py3-none-any.whl"] == 1


def test_npm_fetches_a_package_once(tools_bench: Bench, registry: Registry) -> None:
    line = f"rm -rf node_modules; npm install --no-audit --no-fund --registry {registry.url}/npm tiny; ls node_modules"
    assert all("tiny" in _session(tools_bench, registry, line).splitlines() for _ in range(2))
    assert registry.fetched["/npm/tiny-1.0.0.tgz"] == 1


def _go_project(bench: Bench) -> dict[str, str]:
    (bench.project / "go.mod").write_text(f"module app\ngo 1.19\nrequire {MODULE} v1.0.0\n")
    (bench.project / "main.go").write_text(GO_MAIN)
    return {"GONOSUMDB": "*", "GONOSUMCHECK": "1", "GOFLAGS": "-mod=mod", "GONOPROXY": "none"}


def test_go_fetches_a_module_once_and_builds_from_its_cache(tools_bench: Bench, registry: Registry) -> None:
    environment = _go_project(tools_bench) | {"GOPROXY": f"{registry.url}/go"}
    for _ in range(2):
        assert _session(tools_bench, registry, "go run . 2>&1", environment).endswith("tiny runs\n")
    assert registry.fetched[f"/go/{MODULE}/@v/v1.0.0.zip"] == 1


def test_go_takes_modules_that_the_user_has_without_the_network(tools_bench: Bench, registry: Registry) -> None:
    environment = _go_project(tools_bench)
    host = tools_bench.environment | environment | {"GOPROXY": f"{registry.url}/go"}
    fetch = ["go", "mod", "download", MODULE]
    subprocess.run(fetch, cwd=tools_bench.project, env=host, check=True, capture_output=True)
    before = dict(registry.fetched)
    said = _session(tools_bench, registry, f"go list -f '{{{{.Dir}}}}' {MODULE}", environment | {"GOPROXY": "off"})
    assert said.endswith("/cache/go/pkg/mod/example.test/tiny@v1.0.0\n")
    assert dict(registry.fetched) == before


def test_another_project_fetches_for_itself(tools_bench: Bench, registry: Registry) -> None:
    line = f"npm install --no-audit --no-fund --registry {registry.url}/npm tiny"
    _session(tools_bench, registry, line)
    tools_bench.project = tools_bench.root / "other"
    tools_bench.project.mkdir()
    _session(tools_bench, registry, line)
    assert registry.fetched["/npm/tiny-1.0.0.tgz"] == 2


def test_programs_of_the_host_do_not_use_it(tools_bench: Bench, registry: Registry) -> None:
    line = f"npm install --no-audit --no-fund --registry {registry.url}/npm tiny"
    _session(tools_bench, registry, line)
    (tools_bench.root / "bare").mkdir()
    subprocess.run(
        ["sh", "-c", line], cwd=tools_bench.root / "bare", env=tools_bench.environment, check=True, capture_output=True
    )
    assert registry.fetched["/npm/tiny-1.0.0.tgz"] == 2


def test_without_the_setting_each_session_fetches_anew(tools_bench: Bench, registry: Registry) -> None:
    line = f"rm -rf node_modules; npm install --no-audit --no-fund --registry {registry.url}/npm tiny"
    policy = tools_bench.policy(network__allowedDomains=(registry.place,), filesystem__privateCache=False)
    for _ in range(2):
        with BlockingSandbox(policy, environment=tools_bench.environment) as sandbox:
            assert sandbox.run(line, timeout=200).exit_code == 0
    assert registry.fetched["/npm/tiny-1.0.0.tgz"] == 2
    assert os.listdir(tools_bench.home) == []


def test_what_the_user_has_can_still_be_read(tools_bench: Bench) -> None:
    """Variables that move a cache move settings, credentials and downloads with it; links show these again."""
    home = tools_bench.home
    there = {
        ".cargo/config.toml": "config",
        ".cargo/credentials.toml": "secret",
        ".gradle/init.d/a.gradle": "init",
        ".caches/huggingface/token": "token",
        ".caches/huggingface/hub/models--m/blob": "model",
        ".caches/ms-playwright/chromium-1/chrome": "browser",
        ".cache/puppeteer/chrome/linux-1/chrome": "browser",
    }
    for name, text in there.items():
        _write(home / name, text)
    tools_bench.environment["XDG_CACHE_HOME"] = str(home / ".caches")
    said = tools_bench.good(
        "cat $CARGO_HOME/config.toml $CARGO_HOME/credentials.toml $GRADLE_USER_HOME/init.d/a.gradle $HF_HOME/token "
        "$HF_HOME/hub/models--m/blob $PLAYWRIGHT_BROWSERS_PATH/*/chrome $PUPPETEER_CACHE_DIR/chrome/*/chrome"
    )
    assert said == "".join(there.values())
    done = tools_bench.run("echo x > $CARGO_HOME/config.toml")
    assert b"Read-only file system" in done.stderr
    tools_bench.good("rm $CARGO_HOME/config.toml; echo mine > $CARGO_HOME/config.toml; mkdir $HF_HOME/hub/models--new")
    assert (home / ".cargo/config.toml").read_text() == "config"
    assert os.listdir(home / ".caches/huggingface/hub") == ["models--m"]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_rust_or_maven_project_begins_with_what_the_user_has_downloaded(tools_bench: Bench) -> None:
    home = tools_bench.home
    _write(home / ".cargo/registry/cache/index-1/serde-1.0.crate", "crate")
    _write(home / ".m2/repository/org/x/1.0/x-1.0.jar", "jar")
    _write(home / ".m2/repository/org/x/1.0/_remote.repositories", "tracking")
    for name in ("Cargo.toml", "pom.xml"):
        (tools_bench.project / name).touch()
    maven = "${MAVEN_OPTS#*=}"
    said = tools_bench.good(f"cat $CARGO_HOME/registry/cache/*/* {maven}/org/x/1.0/x-1.0.jar; ls {maven}/org/x/1.0")
    assert said == "cratejarx-1.0.jar\n"
    tools_bench.good(f"echo new > $CARGO_HOME/registry/cache/index-1/new.crate; mkdir {maven}/org/y")
    assert os.listdir(home / ".cargo/registry/cache/index-1") == ["serde-1.0.crate"]
