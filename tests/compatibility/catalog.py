"""All workflows that are tried, part by part."""

from __future__ import annotations

from compiled_workflows import COMPILED
from desktop_workflows import DESKTOP
from git_workflows import GIT
from node_workflows import NODE
from python_workflows import PYTHON
from server_workflows import SERVERS
from system_workflows import SYSTEM

WORKFLOWS = (*GIT, *NODE, *PYTHON, *COMPILED, *SERVERS, *DESKTOP, *SYSTEM)
