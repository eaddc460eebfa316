from __future__ import annotations

import subprocess
import sys

from stockade.policy.network_rules import NetworkRules


def test_without_rules_nothing_is_allowed_and_nothing_denied() -> None:
    assert NetworkRules() == NetworkRules((), ())


def test_to_carry_rules_loads_nothing_that_reads_them() -> None:
    script = "import sys, stockade.policy.network_rules; print('stockade.policy.domain_pattern' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
