"""The ``ioctl`` requests of terminals: which a command may make, and why not the others.

A command may hold the host's terminal as a standard stream. What it sets there outlives it, and a filter cannot tell
that terminal from one that the command made itself. So the list names what ordinary programs need (shells, editors,
pagers, ``ssh``, ``script``, ``tmux``, Python's ``pty``). Every other request of the same type is refused, also one
that the next kernel invents.

What is refused, by class:

- input and output of others: ``TIOCSTI`` types, ``TIOCLINUX`` pastes, ``TIOCCONS`` takes the console's output;
- what stays locked: ``TIOCEXCL`` keeps everybody else from opening the terminal (and ``TIOCNXCL`` takes away a lock of
  the host's), ``TIOCSLCKTRMIOS`` locks its modes, ``TCOOFF`` stops its output, which no key starts again;
- other drivers: ``TIOCSETD`` loads a line discipline, ``TIOCVHANGUP`` hangs up;
- the serial line: ``TIOCSSERIAL``, ``TIOCMSET``, ``TIOCSBRK``, ``TIOCSRS485``, ``TIOCSISO7816`` reprogram it;
- virtual consoles, whole: ``KDSETMODE`` and ``KDSKBMODE`` leave screen or keyboard dead, ``KDSKBENT`` maps keys,
  ``VT_LOCKSWITCH`` and ``VT_SETMODE`` hold the switching, ``PIO_FONT`` changes what everybody reads.

What stays, though it changes something: modes (``TCSETS``) and size (``TIOCSWINSZ``), which programs on a terminal
live by (`stockade run` puts the modes back); ``TIOCSCTTY``, ``TIOCNOTTY`` and ``TIOCSPGRP``, which reach but
processes of the caller's own session; ``TIOCPKT``, ``TIOCSIG``, ``TIOCSPTLCK`` and ``TIOCGPTPEER``, for which one
must hold the master's end; ``FIOASYNC`` (and ``F_SETOWN``), since a process that gets the signal is named by its
number inside.

Rules: the kernel takes the request as 32 bits, so the low half is what is compared.
Source of truth: ``asm-generic/ioctls.h``, ``linux/kd.h``, ``linux/vt.h``, ioctl_tty(2), ioctl_console(2).
"""

from __future__ import annotations

#: The byte of a request that names its kind: terminals, then virtual consoles (``linux/kd.h``, ``linux/vt.h``).
TYPE, TYPES = 0xFF00, (0x5400, 0x4B00, 0x5600)
#: ``TCXONC`` with ``TCOOFF``, its argument.
FLOW, STOP_OUTPUT = 0x540A, 0

#: What a command may ask for among the requests of terminals; the most usual first.
KEPT: dict[str, int] = {
    "TCGETS": 0x5401,
    "TIOCGWINSZ": 0x5413,
    "FIONREAD": 0x541B,
    "FIOCLEX": 0x5451,
    "FIONCLEX": 0x5450,
    "FIONBIO": 0x5421,
    "FIOASYNC": 0x5452,
    "FIOQSIZE": 0x5460,
    "TCSETS": 0x5402,
    "TCSETSW": 0x5403,
    "TCSETSF": 0x5404,
    "TCGETA": 0x5405,
    "TCSETA": 0x5406,
    "TCSETAW": 0x5407,
    "TCSETAF": 0x5408,
    "TCGETS2": 0x802C_542A,
    "TCSETS2": 0x402C_542B,
    "TCSETSW2": 0x402C_542C,
    "TCSETSF2": 0x402C_542D,
    "TCSBRK": 0x5409,  # tcdrain(3), with an argument
    "TCSBRKP": 0x5425,
    "TCXONC": FLOW,
    "TCFLSH": 0x540B,
    "TIOCSCTTY": 0x540E,
    "TIOCNOTTY": 0x5422,
    "TIOCGPGRP": 0x540F,
    "TIOCSPGRP": 0x5410,
    "TIOCGSID": 0x5429,
    "TIOCOUTQ": 0x5411,
    "TIOCSWINSZ": 0x5414,
    "TIOCMGET": 0x5415,
    "TIOCGETD": 0x5424,
    "TIOCGPTN": 0x8004_5430,
    "TIOCSPTLCK": 0x4004_5431,
    "TIOCGDEV": 0x8004_5432,
    "TIOCSIG": 0x4004_5436,
    "TIOCPKT": 0x5420,
    "TIOCGPKT": 0x8004_5438,
    "TIOCGPTLCK": 0x8004_5439,
    "TIOCGEXCL": 0x8004_5440,
    "TIOCGPTPEER": 0x5441,
}

_LAST_BIT = 1
#: Pairs of neighbours are compared at once, without their last bit; the rest one by one.
PAIR = 0xFFFF_FFFF ^ _LAST_BIT
PAIRS = tuple(dict.fromkeys(number & PAIR for number in KEPT.values() if number ^ _LAST_BIT in KEPT.values()))
SINGLES = tuple(number for number in KEPT.values() if number & PAIR not in PAIRS)
