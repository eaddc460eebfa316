"""Open files passed to another process, also while somebody has filled up what a user may have on the way.

The kernel counts all open files that a user has sent and nobody has received yet. A sender of whose user more are under
way than its own limit of open files gets ``ETOOMANYREFS``. A command in a sandbox can bring about that state, and so
can any other program of the user. Commands get a lower hard limit than ours (see ``file_limit``), so that one more try
with our soft limit at the hard one succeeds.

Rules: the limit is raised for the moment of the call alone, since programs that use select(2) rely on it. Helpers
import this before they enter a jail; owners only when it is needed.
Source of truth: unix(7), ``too_many_unix_fds`` in the kernel's ``net/core/scm.c`` and ``net/unix``.
"""

from __future__ import annotations

from errno import ETOOMANYREFS

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _socket import socket

WORDS: Final = "more open files of this user are on their way between programs than its limit allows"
HINT: Final = (
    "end the program that sends open files nobody receives (a command in a sandbox, perhaps), or raise ulimit -Hn"
)


def hint(error: BaseException | None, usual: str) -> str:
    """Return what to do about a failure to reach another process."""
    return HINT if isinstance(error, OSError) and error.errno == ETOOMANYREFS else usual


def send_again(end: socket, data: bytes | memoryview, ancillary: list[tuple[int, int, bytes]], flags: int = 0) -> int:
    """Send what was refused with ``ETOOMANYREFS`` once more; return how many bytes went.

    Raises ``OSError``, with words if it is refused again.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return end.sendmsg([data], ancillary, flags)
    except ValueError as error:
        raise OSError(ETOOMANYREFS, WORDS) from error
    except OSError as error:
        if error.errno != ETOOMANYREFS:
            raise
        raise OSError(ETOOMANYREFS, WORDS) from error
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
