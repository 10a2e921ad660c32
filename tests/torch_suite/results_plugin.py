"""A pytest plugin: one line of JSON for each test as soon as it has ended, so that a crash loses nothing.

``--results FILE`` says where. A line "started" without a line "ended" after it is a test in which the process died.
"""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", required=True, help="the file that results are appended to")


class _Results:
    def __init__(self, path: str) -> None:
        self.path = path

    def _write(self, line: Dict[str, Any]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write({"test": nodeid, "event": "started"})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        message = ""
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash is not None else str(report.longrepr)
        elif report.outcome == "skipped" and isinstance(report.longrepr, tuple):
            message = str(report.longrepr[2])
        where = ""
        if report.outcome == "failed" and report.longreprtext:
            where = report.longreprtext
        self._write({"test": report.nodeid, "event": "ended", "outcome": report.outcome, "message": message, "text": where})


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Results(config.getoption("--results")))
