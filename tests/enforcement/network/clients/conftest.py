"""What real clients talk to: a repository by http and ssh, an index of packages, a registry; and clients of our own.

All but sshd hang on the world's web server, so that the journal has whatever reached them. sshd is a real one, with
keys that are thrown away; whoever runs the tests, it takes that user in by the key alone, with a shell, whatever the
machine's own tables of users say.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import os
import pwd
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.enforcement.network.conftest import Net, Request, Response

PATIENCE = 60.0
_GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}

STATIC = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Asks a name server for an address, connects to it, sends a word and prints what comes back. No library helps. */
static int ask(const char *server, int port, const char *name, struct in_addr *found) {
    unsigned char message[512] = {0x12, 0x34, 1, 0, 0, 1}, *end = message + 12;
    for (const char *label = name; *label;) {
        size_t size = strcspn(label, ".");
        *end++ = size;
        memcpy(end, label, size);
        end += size;
        label += size + (label[size] == '.');
    }
    memcpy(end, "\0\0\1\0\1", 5);
    end += 5;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_aton(server, &to.sin_addr);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {10, 0};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    size_t asked = end - message;
    if (sendto(s, message, asked, 0, (void *)&to, sizeof to) < 0) return 2;
    long got = recv(s, message, sizeof message, 0);
    close(s);
    if (got < 0) return 2;
    if (message[3] & 15 || !message[7] || got < (long)asked + 16) return 3;
    memcpy(found, message + asked + 12, 4);
    return 0;
}

int main(int count, char **words) {
    if (count != 6) return 9;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[4]))};
    int failed = ask(words[1], atoi(words[2]), words[3], &to.sin_addr);
    if (failed) return failed;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (void *)&to, sizeof to) < 0) return 4;
    char answer[256] = {0};
    if (write(s, words[5], strlen(words[5])) < 0 || read(s, answer, sizeof answer - 1) <= 0) return 5;
    printf("%s\n", answer);
    return 0;
}
"""

JAVA = r"""
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Fetch {
    public static void main(String[] words) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(words[1])) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().sslContext(context).build();
        HttpResponse<String> answer =
            client.send(HttpRequest.newBuilder(URI.create(words[0])).build(), HttpResponse.BodyHandlers.ofString());
        System.out.print(answer.body());
        System.exit(answer.statusCode() == 200 ? 0 : 1);
    }
}
"""

NODE = "fetch(process.argv[1]).then(async a => { console.log(await a.text()); process.exit(a.ok ? 0 : 1) })"
URLLIB = (
    "import ssl, sys, urllib.request as u; c = ssl.create_default_context(cafile=sys.argv[2]);"
    "print(u.urlopen(sys.argv[1], context=c, timeout=20).read().decode())"
)
REQUESTS = (
    "import requests, sys; a = requests.get(sys.argv[1], verify=sys.argv[2], timeout=20);"
    "a.raise_for_status(); print(a.text)"
)
HTTPX = (
    "import httpx, ssl, sys; c = ssl.create_default_context(cafile=sys.argv[2]);"
    "a = httpx.get(sys.argv[1], verify=c, timeout=20); a.raise_for_status(); print(a.text)"
)
AIOHTTP = """
import aiohttp, asyncio, ssl, sys
async def main():
    context = ssl.create_default_context(cafile=sys.argv[2])
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.get(sys.argv[1], ssl=context) as answer:
            answer.raise_for_status()
            print(await answer.text())
asyncio.run(main())
"""


class Client(Value):
    """How a client is started to fetch something of a host, and what it prints or leaves when that worked."""

    words: tuple[str, ...]
    says: str
    variables: Mapping[str, str] = {}


class Yard:
    """The servers and programs of the clients' tests."""

    def __init__(self, net: Net, go_program: str) -> None:
        self.net = net
        self.go_program = go_program
        self.folder = net.root / "yard"
        self.folder.mkdir()
        self.python = sys.executable
        self._places = 0
        self._serve_repository()
        self._serve_packages()
        self._build_programs()
        self.sshd = Sshd(net.root / "sshd", self.folder / "tiny.git")

    def place(self) -> Path:
        """Return a directory, inside the project, that nobody has used."""
        self._places += 1
        place = self.net.project / f"place{self._places}"
        place.mkdir()
        return place

    def clients(self, host: str, mark: str) -> dict[str, Client]:
        """Return each client, set to fetch from a host."""
        ca, port = str(self.net.ca), self.net.https.port
        url = f"https://{host}:{port}/{mark}"
        plain = f"http://{host}:{self.net.http.port}/{mark}"
        hello = f"hello from {host}"
        place = self.place()
        python = (self.python, "-c")
        return {
            "curl": Client(("curl", "-sS", "--fail", "--cacert", ca, url), hello),
            "curl by http": Client(("curl", "-sS", "--fail", plain), hello),
            "curl by IPv6": Client(("curl", "-6", "-sS", "--fail", "--cacert", ca, url), hello),
            "wget": Client(("wget", "-q", "-O", "-", f"--ca-certificate={ca}", url), hello),
            "wget by http": Client(("wget", "-q", "-O", "-", plain), hello),
            "git by http": Client(
                ("git", "-c", f"http.sslCAInfo={ca}", "ls-remote", f"https://{host}:{port}/git/tiny.git"),
                "refs/heads/main",
                _GIT,
            ),
            "git clone": Client(
                ("git", "-c", f"http.sslCAInfo={ca}", "clone", f"https://{host}:{port}/git/tiny.git", f"{place}/clone"),
                "",
                _GIT,
            ),
            "pip": Client(
                (
                    *(self.pip, "-m", "pip", "download", "--no-cache-dir", "--no-deps", "--retries", "0", "--cert", ca),
                    *("--index-url", f"https://{host}:{port}/simple/", "-d", str(place / "wheels"), "tiny"),
                ),
                "Successfully downloaded tiny",
                {"PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            ),
            "npm": Client(
                (
                    *(
                        "npm",
                        "install",
                        "--prefix",
                        str(place / "npm"),
                        "--cache",
                        str(place / "cache"),
                        "--cafile",
                        ca,
                    ),
                    *("--registry", f"https://{host}:{port}/npm/", "--fetch-retries=0", "--no-audit", "--no-fund"),
                    *("--no-update-notifier", f"--userconfig={place}/npmrc", "tiny"),
                ),
                "added 1 package",
            ),
            "node": Client(("node", "-e", NODE, url), hello, {"NODE_EXTRA_CA_CERTS": ca}),
            "java": Client(("java", "-XX:TieredStopAtLevel=1", str(self.folder / "Fetch.java"), url, ca), hello),
            "go": Client((self.go_program, "fetch", url, ca), hello),
            "urllib": Client((*python, URLLIB, url, ca), hello),
            "requests": Client((*python, REQUESTS, url, ca), hello),
            "httpx": Client((*python, HTTPX, url, ca), hello),
            "aiohttp": Client((*python, AIOHTTP, url, ca), hello),
        }

    def static(self, host: str, mark: str, dns: int = 53) -> Client:
        """Return the static program, which finds its name server by itself."""
        words = (str(self.folder / "fetch"), "127.0.0.1", str(dns), host, str(self.net.echo.port), mark)
        return Client(words, mark)

    def git_by_ssh(self, host: str) -> Client:
        """Return git with a repository behind sshd."""
        url = f"ssh://{self.sshd.user}@{host}:{self.sshd.port}{self.folder}/tiny.git"
        return Client(("git", "ls-remote", url), "refs/heads/main", _GIT)

    def _serve_repository(self) -> None:
        from_here = self.folder / "work"
        repository = self.folder / "tiny.git"
        variables = self.net.environment | _GIT
        for line in (
            f"git init -q -b main {from_here}",
            f"git -C {from_here} commit -q --allow-empty -m first",
            f"git clone -q --bare {from_here} {repository}",
        ):
            subprocess.run(line.split(), env=variables, check=True, capture_output=True, timeout=PATIENCE)
        core = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, timeout=PATIENCE).stdout
        backend = Path(core.decode().strip(), "git-http-backend")
        for web in (self.net.http, self.net.https):
            web.routes["/git/"] = lambda request: _cgi(str(backend), self.folder, variables, request)

    def _serve_packages(self) -> None:
        from_net = self.net.https.routes
        wheel, tarball = _wheel(), _tarball()
        link = '<a href="/simple/files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'

        def index(request: Request) -> Response:
            if "/files/" in request.path:
                return _response(request, wheel, "application/octet-stream")
            return _response(request, f"<!DOCTYPE html><html><body>{link}</body></html>".encode(), "text/html")

        def registry(request: Request) -> Response:
            if request.path.endswith(".tgz"):
                return _response(request, tarball, "application/octet-stream")
            return _response(request, json.dumps(_document(request.host, tarball)).encode(), "application/json")

        from_net["/simple/"] = index
        from_net["/npm/"] = registry

    def _build_programs(self) -> None:
        (self.folder / "Fetch.java").write_text(JAVA)
        (self.folder / "fetch.c").write_text(STATIC)
        words = ["gcc", "-static", "-O1", "-o", "fetch", "fetch.c"]
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True, timeout=PATIENCE)
        self.pip = self.python
        if importlib.util.find_spec("pip") is None:
            words = ["/usr/bin/python3", "-m", "venv", str(self.folder / "venv")]
            subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
            self.pip = str(self.folder / "venv/bin/python")


def _response(request: Request, body: bytes, kind: str) -> Response:
    """Return an answer of the class that the world's web servers know, which tests cannot import."""
    module = sys.modules[type(request).__module__]
    made: Response = module.Response(body, kind=kind)
    return made


def _cgi(program: str, root: Path, variables: Mapping[str, str], request: Request) -> Response:
    path, _, query = request.path.removeprefix("/git").partition("?")
    headers = {name.lower(): value for name, value in request.headers}
    told = {
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": headers.get("content-type", ""),
        "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
        "GIT_PROTOCOL": headers.get("git-protocol", ""),
        "CONTENT_LENGTH": str(len(request.body)),
    }
    done = subprocess.run(
        [program], input=request.body, env={**variables, **told}, capture_output=True, timeout=PATIENCE, check=False
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    lines = dict(line.split(": ", 1) for line in head.decode().splitlines())
    module = sys.modules[type(request).__module__]
    status = int(lines.pop("Status", "200").split()[0])
    answer: Response = module.Response(body, status, lines.pop("Content-Type", "text/plain"), tuple(lines.items()))
    return answer


def _wheel() -> bytes:
    files = {
        "tiny.py": "word = 'tiny'\n",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, "tiny-1.0.dist-info/RECORD"))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in (files | {"tiny-1.0.dist-info/RECORD": record}).items():
            archive.writestr(name, text)
    return made.getvalue()


def _tarball() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        text = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return made.getvalue()


def _document(host: str, tarball: bytes) -> dict[str, object]:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"tarball": f"https://{host}/npm/tiny/-/tiny-1.0.0.tgz", "integrity": integrity}
    version = {"name": "tiny", "version": "1.0.0", "dist": dist}
    return {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}


class Sshd:
    """A real sshd for whoever runs the tests."""

    def __init__(self, folder: Path, repository: Path) -> None:
        folder.mkdir()
        folder.chmod(0o700)
        self.folder = folder
        self.repository = repository
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name]
            subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
        self._write_settings()
        self._process = self._start()

    @property
    def ssh(self) -> str:
        """How ssh is called to come in: with the key, and knowing the host by each of its names."""
        options = "-o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=20"
        return f"ssh -F none -i {self.folder}/user -o UserKnownHostsFile={self.folder}/known_hosts {options}"

    def heard(self) -> int:
        """Return how many connections have come."""
        return (self.folder / "log").read_text().count("Connection from ")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _write_settings(self) -> None:
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "user.pub",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            "LogLevel": "VERBOSE",
        }
        (self.folder / "settings").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        key = " ".join((self.folder / "host.pub").read_text().split()[:2])
        known = "".join(f"[{host}]:{self.port} {key}\n" for host in ("ssh.test", "evil.test"))
        (self.folder / "known_hosts").write_text(known)
        users = [entry for entry in pwd.getpwall() if entry.pw_name != self.user]
        me = pwd.getpwuid(os.geteuid())
        mine = f"{me.pw_name}:x:{me.pw_uid}:{me.pw_gid}::{self.folder}:/bin/sh\n"
        others = "".join(f"{one.pw_name}:x:{one.pw_uid}:{one.pw_gid}::/:/bin/false\n" for one in users)
        (self.folder / "passwd").write_text(mine + others)
        (self.folder / "shadow").write_text(f"{me.pw_name}:*:19000::::::\n")

    def _start(self) -> subprocess.Popen[bytes]:
        # Tables of its own: an account of the machine may have no shell, or be locked, and root's sshd wants /run/sshd.
        tables = [
            word for name in ("passwd", "shadow") for word in ("--ro-bind", f"{self.folder}/{name}", f"/etc/{name}")
        ]
        room = ["--tmpfs", "/run", "--dir", "/run/sshd", "--die-with-parent"]
        rights = ["--cap-add", "ALL"] if os.geteuid() == 0 else []
        path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
        sshd = next(f"{folder}/sshd" for folder in path.split(os.pathsep) if os.access(f"{folder}/sshd", os.X_OK))
        process = subprocess.Popen(
            [
                *("bwrap", "--dev-bind", "/", "/", *tables, *room, *rights),
                *("--", sshd, "-D", "-f", f"{self.folder}/settings", "-E", f"{self.folder}/log"),
            ],
            stdin=subprocess.DEVNULL,
        )
        self._wait_for(process)
        return process

    def _wait_for(self, process: subprocess.Popen[bytes]) -> None:
        log = self.folder / "log"
        for _ in range(600):
            if log.exists() and "Server listening" in log.read_text():
                return
            assert process.poll() is None, log.read_text() if log.exists() else "sshd did not start"
            time.sleep(0.05)
        message = f"sshd does not listen: {log.read_text()}"
        raise TimeoutError(message)


@pytest.fixture(scope="session")
def yard(net: Net, go_program: str) -> Iterator[Yard]:
    """What clients talk to."""
    yard = Yard(net, go_program)
    try:
        yield yard
    finally:
        yard.sshd.close()
