"""``lanescope.view(path)`` and ``prof.view()``: the page of ``lanescope view``, from Python and in notebooks."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from ._core import UnavailableError

if TYPE_CHECKING:
    from .profiler import profile

PathLike = Union[str, "os.PathLike[str]"]

# Where the browser runs on another machine than this Python, so that it cannot reach a port of this one.
_REMOTE_NOTEBOOKS = ("JUPYTERHUB_USER", "COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE", "SSH_CONNECTION")


_running: "set[View]" = set()  # a page lives on when nobody keeps its object


class View:
    """A page that is being served. It ends with :meth:`close`, with this Python, or a minute after its last tab."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, temporary: Optional[str], frame: bool) -> None:
        self.url = url
        self._frame = frame
        self._process = process
        self._temporary = temporary
        _running.add(self)

    def close(self) -> None:
        """Ends the server. More than once is fine."""
        _running.discard(self)
        _end(self._process, self._temporary)

    @property
    def is_open(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lanescope.View {'at ' + self.url if self.is_open else 'ended'}>"

    def _repr_mimebundle_(self, **_: Any) -> Dict[str, str]:
        if not self._frame or not self.is_open:
            return {"text/plain": repr(self)}
        frame = f'<iframe src="{self.url}" width="100%" height="700" style="border:0" title="lanescope view"></iframe>'
        return {"text/plain": repr(self), "text/html": frame}


class SavedView:
    """A page without a server, for a notebook whose browser cannot reach this machine."""

    def __init__(self, html: str) -> None:
        self.html = html

    def __repr__(self) -> str:
        return f"<lanescope.SavedView of {len(self.html):,} bytes>"

    def _repr_mimebundle_(self, **_: Any) -> Dict[str, str]:
        source = self.html.replace("&", "&amp;").replace('"', "&quot;")
        frame = f'<iframe srcdoc="{source}" width="100%" height="700" style="border:0" title="lanescope view"></iframe>'
        return {"text/plain": repr(self), "text/html": frame}


def _close_all() -> None:
    for each in list(_running):
        each.close()


atexit.register(_close_all)


def _end(process: "subprocess.Popen[str]", temporary: Optional[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)


def _command() -> str:
    # Not at the top: `python3 -m lanescope.record` would warn that the package has imported it already.
    from .record import results_command

    found = os.environ.get("LANESCOPE_COMMAND") or results_command()
    if not found:
        raise UnavailableError("expected the lanescope command next to this Python or in PATH, found none; pip install lanescope puts it there")
    return found


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _fail(errors: str) -> UnavailableError:
    lines = [line for line in errors.splitlines() if line]
    return UnavailableError(lines[-1].replace("lanescope: view: ", "") if lines else "lanescope view ended without a reason")


def view(path: PathLike, other: Optional[PathLike] = None, *, port: Optional[int] = None, open_browser: Optional[bool] = None,
         frame: Optional[bool] = None) -> Union[View, SavedView]:
    """Opens a page that shows a trace; with ``other``, two traces side by side.

    Outside of notebooks the browser opens (``open_browser=False``: it does not, and ``.url`` is the address). In a Jupyter
    notebook the result shows the page in the output, served from this machine (``frame=True``); where the browser runs
    elsewhere, such as JupyterHub, Colab or ssh, it is one page that holds a part of the trace (``frame=False``).
    Raises lanescope.UnavailableError when the command or its page is missing, or the trace cannot be read.
    """
    return _start([os.fspath(path)] + ([os.fspath(other)] if other is not None else []), None, port, open_browser, frame)


def view_of(prof: "profile", **options: Any) -> Union[View, SavedView]:
    """The same for what a profiler has recorded; the trace lies in a temporary file as long as the page is served."""
    folder = tempfile.mkdtemp(prefix="lanescope-view-")
    path = os.path.join(folder, "trace.json")
    try:
        prof.export_chrome_trace(path)
        return _start([path], folder, options.get("port"), options.get("open_browser"), options.get("frame"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _start(paths: List[str], temporary: Optional[str], port: Optional[int], open_browser: Optional[bool],
           frame: Optional[bool]) -> Union[View, SavedView]:
    notebook = _in_notebook()
    if frame is None:
        frame = notebook and not any(os.environ.get(name) for name in _REMOTE_NOTEBOOKS)
    if notebook and not frame and open_browser is None and len(paths) == 1:
        saved = subprocess.run([_command(), "view", paths[0], "--html", "-"], capture_output=True, text=True, check=False)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if saved.returncode != 0:
            raise _fail(saved.stderr)
        return SavedView(saved.stdout)
    arguments = [_command(), "view", *paths]
    if not (open_browser if open_browser is not None else not notebook):
        arguments.append("--no-open")
    if port is not None:
        arguments += ["--port", str(port)]
    if frame:
        arguments.append("--in-frame")
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    url = process.stdout.readline().strip()
    if not url:
        errors = process.stderr.read()
        _end(process, None)
        raise _fail(errors)
    return View(process, url, temporary, frame)
