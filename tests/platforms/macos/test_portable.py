"""What macOS has not is called by the walls of Linux alone, or after a look whether it is there."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "stockade"
#: Names that the standard library has on Linux only.
LINUX_ONLY = {
    "EPOLLIN",
    "O_PATH",
    "O_TMPFILE",
    "SOCK_CLOEXEC",
    "SOCK_NONBLOCK",
    "SOCK_SEQPACKET",
    "SO_PEERCRED",
    "epoll",
    "eventfd",
    "memfd_create",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe2",
    "sched_getaffinity",
    "setns",
    "splice",
    "unshare",
}
#: Where somebody looks first: the module, and why it may name them.
GUARDED = {
    "network/pipe.py": "pipes are lent only where there is splice",
    "network/proxy_process.py": "asks for the platform",
    "platforms/macos/watch.py": "asks for kqueue",
    "sandbox/input.py": "asks for memfd_create",
    "tool/outside.py": "a thread waits where there is no pidfd",
}


def _names(tree: ast.AST) -> set[str]:
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return attributes | imported


def test_nothing_of_linux_alone_is_used_elsewhere() -> None:
    found = {
        (name, word)
        for path in SOURCE.rglob("*.py")
        if not (name := path.relative_to(SOURCE).as_posix()).startswith("platforms/linux/") and name not in GUARDED
        for word in _names(ast.parse(path.read_text("utf-8"))) & LINUX_ONLY
    }
    assert found == set()
