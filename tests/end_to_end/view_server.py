"""A running `lanescope view`, and small traces for it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import os
import pathlib
import signal
import subprocess
from typing import Any, Dict, Iterator, List, Optional

import pytest

from conftest import clean_environment


class View:
    """A running `lanescope view`."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self.process = process
        address, self.token = url.split("/#t=")
        self.port = int(address.rsplit(":", 1)[1])

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
            token: Optional[str] = "own") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers or {})
        if token is not None:
            sent["X-Token"] = self.token if token == "own" else token
        data = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def json(self, path: str, body: Any = None) -> Any:
        answer = self.ask("GET" if body is None else "POST", path, body)
        assert answer.status == 200, answer.content
        return json.loads(answer.content)

    def refused(self, path: str, body: Any = None) -> str:
        answer = self.ask("GET" if body is None else "POST", path, body)
        assert answer.status == 400, answer.content
        return json.loads(answer.content)["error"]


@contextlib.contextmanager
def viewing(binary: str, *arguments: Any, env: Optional[Dict[str, str]] = None) -> Iterator[View]:
    page = pathlib.Path(__file__).parent / "view_page"  # the server runs without a built page, too
    process = subprocess.Popen([binary, "view", *map(os.fspath, arguments), "--no-open"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=clean_environment({"LANESCOPE_PAGE": str(page), **(env or {})}))
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (url, process.stderr.read() if not url else "")
        yield View(process, url)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def write_trace(path: pathlib.Path, events: List[Dict[str, Any]]) -> pathlib.Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def small_trace(folder: pathlib.Path) -> pathlib.Path:
    events = []
    for step in range(4):
        at = 1000 + step * 500
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 2, "ts": at, "dur": 480},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": at + 10, "dur": 60,
             "args": {"External id": step + 1, "Input Dims": [[64, 64], [64, 64]]}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": at + 30, "dur": 10,
             "args": {"correlation": step + 1}},
            {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "pid": 0, "tid": 7, "ts": at + 50, "dur": 100,
             "args": {"correlation": step + 1, "device": 0, "stream": 7}},
        ]
    return write_trace(folder / "small.json", events)


@pytest.fixture(scope="module")
def small(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with viewing(binary, small_trace(tmp_path_factory.mktemp("view"))) as view:
        yield view


def has_page(binary: str) -> bool:
    ran = subprocess.run([binary, "view", "/nonexistent.json", "--no-open"], capture_output=True, text=True, check=False)
    return "built without" not in ran.stderr


def saved_data(html: str) -> Any:
    packed = html.split('<script type="text/plain" id="lanescope-saved">')[1].split("</script>")[0]
    return json.loads(gzip.decompress(base64.b64decode(packed)))
