from __future__ import annotations

import pytest

from stockade.platforms.backend import Report
from stockade.platforms.macos.log_event import Event
from stockade.platforms.macos.log_report import report_of
from stockade.platforms.macos.tag import Tag
from stockade.violations.violation import Operation


@pytest.mark.parametrize(
    ("operation", "target", "report"),
    [
        pytest.param("file-read-data", "/x", ("read", "/x"), id="read"),
        pytest.param("file-read-metadata", "/x", ("read", "/x"), id="look"),
        pytest.param("file-write-create", "/x", ("create", "/x"), id="create"),
        pytest.param("file-write-data", "/x", ("write", "/x"), id="write"),
        pytest.param("file-write-unlink", "/x", ("delete", "/x"), id="delete"),
        pytest.param("file-write-mode", "/x", ("metadata", "/x"), id="metadata"),
        pytest.param("file-write-something", "/x", ("write", "/x"), id="a-write-to-come"),
        pytest.param("file-link", "/x", ("read", "/x"), id="other-uses-of-files"),
        pytest.param("process-exec", "/bin/x", ("execute", "/bin/x"), id="execute"),
        pytest.param("network-outbound", "/tmp/s", ("unix-connect", "/tmp/s"), id="unix-socket"),
        pytest.param("network-outbound", 'path:"/tmp/s"', ("unix-connect", "/tmp/s"), id="unix-socket-quoted"),
        pytest.param("network-outbound", "192.0.2.1:443", None, id="past-the-proxies"),
        pytest.param("network-outbound", "/private/var/run/mDNSResponder", None, id="names"),
        pytest.param("mach-lookup", "com.apple.diagnosticd", None, id="service"),
        pytest.param("sysctl-read", "kern.x", None, id="sysctl"),
        pytest.param("file-read-data", "/dev/dtracehelper", None, id="probes"),
        pytest.param("file-read-data", "x", None, id="no-path"),
        pytest.param("forbidden-exec-sugid", "", None, id="unknown"),
    ],
)
def test_reports(operation: str, target: str, report: tuple[str, str] | None) -> None:
    found = report_of(Event(Tag(3, "make"), "sh", 1, operation, target, times=2))
    assert found == (None if report is None else Report(3, *report, 2))
    if found is not None:
        assert found.operation in {one.value for one in Operation}
