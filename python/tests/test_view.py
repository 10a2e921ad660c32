"""``lanescope.view``: starts the command, ends it, and shows the right thing in a notebook."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import types
from typing import Any, Iterator

import pytest

import lanescope
from lanescope import _view
from lanescope.record import results_command

COMMAND = os.environ.get("LANESCOPE_COMMAND") or results_command()


def has_page() -> bool:
    """Was the command built with its server and its page?"""
    if not COMMAND:
        return False
    ran = subprocess.run([COMMAND, "view", "/nonexistent.json", "--no-open"], capture_output=True, text=True, check=False)
    return "built without" not in ran.stderr


needs_page = pytest.mark.skipif(not has_page(), reason="the lanescope command was built without its page (needs cpp-httplib and Node.js)")


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "trace.json"
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5} for i in range(20)]
    path.write_text(json.dumps({"traceEvents": events}))
    return str(path)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    class ZMQInteractiveShell:
        pass

    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: ZMQInteractiveShell()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", fake)
    for name in _view._REMOTE_NOTEBOOKS:
        monkeypatch.delenv(name, raising=False)
    yield


@needs_page
def test_a_view_serves_until_it_is_closed(trace: str) -> None:
    with lanescope.view(trace, open_browser=False) as view:
        assert isinstance(view, lanescope.View)
        assert view.url.startswith("http://127.0.0.1:") and view.is_open
        assert "text/html" not in view._repr_mimebundle_()
    assert not view.is_open and "ended" in repr(view)
    view.close()


@needs_page
def test_in_a_notebook_it_is_a_frame(trace: str, notebook: None) -> None:
    view = lanescope.view(trace)
    assert isinstance(view, lanescope.View)
    try:
        assert f'<iframe src="{view.url}"' in view._repr_mimebundle_()["text/html"]
    finally:
        view.close()


@needs_page
def test_where_the_browser_is_elsewhere_it_is_a_whole_page(trace: str, notebook: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "somebody")
    view = lanescope.view(trace)
    assert isinstance(view, lanescope.SavedView)
    assert 'id="lanescope-saved"' in view.html
    assert view._repr_mimebundle_()["text/html"].count("<iframe") == 1


@needs_page
def test_a_profile_can_be_looked_at() -> None:
    with lanescope.profile() as prof:
        with lanescope.record_function("work"):
            sum(range(1000))
    view: Any = prof.view(open_browser=False)
    folder = view._temporary
    assert os.path.exists(os.path.join(folder, "trace.json"))
    view.close()
    assert not os.path.exists(folder)


@needs_page
def test_a_missing_file_is_one_clear_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(lanescope.UnavailableError, match="missing.json"):
        lanescope.view(tmp_path / "missing.json", open_browser=False)


def test_without_the_command_it_says_where_it_comes_from(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANESCOPE_COMMAND", raising=False)
    monkeypatch.setattr("lanescope.record.results_command", lambda: "")
    with pytest.raises(lanescope.UnavailableError, match="pip install lanescope"):
        lanescope.view(trace)
