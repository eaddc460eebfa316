"""Runs lines with sandlock's library; the protocol is that of ``driven``. Started by sandlock's own interpreter."""

from __future__ import annotations

import json
import sys
import time

from sandlock import Sandbox  # type: ignore[import-not-found]  # lives in an environment of its own


def main() -> None:
    """Serve until the input ends."""
    policy = json.loads(sys.argv[1])
    sandbox = Sandbox(
        fs_readable=["/"],
        fs_writable=[policy["tree"], "/dev/null"],
        fs_denied=policy["denied"],
        cwd=policy["tree"],
    )
    print(json.dumps({"ready": True}), flush=True)
    for text in sys.stdin:
        line = json.loads(text)
        words = [policy["shell"], "-c", line] if policy["shell"] else [line]
        began = time.perf_counter()
        result = sandbox.run(words)
        took = time.perf_counter() - began
        print(json.dumps({"seconds": took, "status": result.exit_code}), flush=True)


main()
