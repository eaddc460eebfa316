from __future__ import annotations

from stockade.policy.compile import compile_policy
from stockade.policy.rule_list import rule_list
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge


def test_every_list_is_there_by_its_title() -> None:
    values: dict[str, object] = {
        "sandbox.filesystem.allowWrite": ("/w",),
        "sandbox.filesystem.denyWrite": ("/dw",),
        "sandbox.filesystem.denyRead": ("/dr",),
        "sandbox.filesystem.allowRead": ("/ar",),
        "sandbox.network.allowedDomains": ("a.example",),
        "sandbox.network.deniedDomains": ("b.example",),
        "sandbox.network.allowUnixSockets": ("/s",),
        "sandbox.network.denyUnixSockets": ("/s/closed",),
        "sandbox.excludedCommands": ("docker",),
        "permissions.allow": ("Bash(ls)",),
        "permissions.deny": ("Bash(rm)",),
        "permissions.ask": ("Bash(cp)",),
    }
    policy = compile_policy(merge([Document(Layer.USER, "s.json", values)]), cwd="/p", home="/h")
    assert {title: [rule.value.text for rule in rules] for title, rules in rule_list(policy).items()} == {
        "may write": ["/p", "/w"],
        "may not write": ["/dw"],
        "may not read": ["/dr"],
        "may read again": ["/ar"],
        "may reach": ["a.example"],
        "may not reach": ["b.example"],
        "unix sockets": ["/s"],
        "unix sockets denied": ["/s/closed"],
        "runs outside": ["docker"],
        "commands allowed": ["ls"],
        "commands denied": ["rm"],
        "commands asked for": ["cp"],
    }
