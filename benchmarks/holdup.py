"""How long a command's calls wait while another command asks the supervisor the dearest questions that it can.

    python benchmarks/holdup.py [--count N] [--memory MIB]

The innocent command makes files with ``open(O_CREAT)`` and is timed inside, first alone, then beside each attack:
chains of 38 links of nearly 4,096 bytes, whose texts lead up, or up and down, or through deep directories. Each chain
is gone through twice: by ``open(O_CREAT)``, about which the supervisor is asked, and by ``stat``, about which it is
not. The second shows what the kernel's own work for the attacker takes from everybody. A last attacker changes the
rights of two gibibytes of its memory again and again, for which everybody waits who reads it. The table is printed and
written to ``results.md``.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import machine
from results import write
from stockade import BlockingSandbox, load_policy
from table import render
from workplace import workplace

RESULTS = Path(__file__).with_name("results.md")
#: The text of each link of a chain, before the name of the next one; ``here`` is the directory of all.
CHAINS = {
    "links that lead up": "'../' * 1300 + here[1:] + '/'",
    "links that lead up and down": "'/' + 'dev/../' * 500 + here[1:] + '/'",
    "links through deep directories": "here + '/' + 'deep/' * 300 + '../' * 300",
}
ATTACK = """\
import os
here = os.getcwd() + '/attack'
os.makedirs(here + '/deep' * 300, exist_ok=True)
os.chdir(here)
for number in range(38):
    try: os.unlink(str(number))
    except FileNotFoundError: pass
    os.symlink({text} + str(number + 1), str(number))
print('ready', flush=True)
while True:
    try: {call}
    except OSError: pass
"""
CALLS = {"made": "os.open('0/x', os.O_CREAT | os.O_WRONLY)", "only looked at": "os.stat('0/x')"}
CHANGING_MEMORY = """\
import ctypes, mmap, os, threading
size = {size} << 20
libc = ctypes.CDLL(None)
room = mmap.mmap(-1, size)
start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(room)))
libc.madvise(start, ctypes.c_size_t(size), 15)  # small pages
ctypes.memset(start, 1, size)
def change():
    while True:
        for rights in (1, 3): libc.mprotect(start, ctypes.c_size_t(size), rights)
threading.Thread(target=change, daemon=True).start()
print('ready', flush=True)
while True: os.close(os.open('attack-file', os.O_CREAT | os.O_WRONLY))
"""
INNOCENT = """\
import json, os, time
took = []
for number in range({count}):
    began = time.perf_counter()
    file = os.open(f'made{{number}}', os.O_CREAT | os.O_WRONLY)
    took.append(time.perf_counter() - began)
    os.close(file)
    os.unlink(f'made{{number}}')
print(json.dumps(took))
"""


class Options(argparse.Namespace):
    """The command line, typed."""

    count: int
    memory: int
    output: Path


def _row(title: str, took: list[float], quiet: float) -> list[str]:
    ordered = sorted(took)
    mean, median, most = sum(took) / len(took), ordered[len(ordered) // 2], ordered[-1]
    last = ordered[int(len(ordered) * 0.99)]
    return [title, *(f"{seconds * 1e3:.3f}" for seconds in (median, mean, last, most)), f"{mean / quiet:.1f}"]


def _innocent(sandbox: BlockingSandbox, count: int) -> list[float]:
    done = sandbox.run(["python3", "-c", INNOCENT.format(count=count)])
    took: list[float] = json.loads(done.stdout)
    return took


def _beside(sandbox: BlockingSandbox, attacker: str, count: int) -> list[float]:
    with sandbox.spawn(["python3", "-c", attacker], stdin=None) as attack:
        assert attack.stdout is not None  # noqa: S101
        attack.stdout.readline()
        return _innocent(sandbox, count)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="files that the innocent makes (default: %(default)s)")
    parser.add_argument(
        "--memory", type=int, default=2048, help="MiB that the last attacker has (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of results (default: beside this program)")
    options = parser.parse_args(namespace=Options())
    output = options.output.absolute()
    with workplace() as place:
        tree = place.base / "tree"
        tree.mkdir()
        os.chdir(tree)
        with BlockingSandbox(load_policy(tree, settings_file=str(place.settings))) as sandbox:
            alone = _innocent(sandbox, options.count)
            quiet = sum(alone) / len(alone)
            rows = [_row("nothing", alone, quiet)]
            for title, text in CHAINS.items():
                for how, call in CALLS.items():
                    attacker = ATTACK.format(text=text, call=call)
                    rows.append(_row(f"{title}, {how}", _beside(sandbox, attacker, options.count), quiet))
            attacker = CHANGING_MEMORY.format(size=options.memory)
            rows.append(_row("memory that changes", _beside(sandbox, attacker, options.count), quiet))
    head = ["beside", "ms median", "ms mean", "ms 99 %", "ms most", "times the quiet mean"]
    facts = "\n".join(f"- {fact}" for fact in machine.facts())
    text = f"{facts}\n\n{render(head, rows)}"
    print(text)
    write(output, "Hold-up", text)


if __name__ == "__main__":
    main()
