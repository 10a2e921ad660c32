"""Where TensorBoard's profiler plugin looks for traces."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Callable, Optional, Union

if TYPE_CHECKING:
    from .profiler import profile


class FolderError(RuntimeError, OSError):
    """The folder for traces cannot be made. torch.profiler raises RuntimeError then."""


def tensorboard_trace_handler(
    dir_name: Union[str, "os.PathLike[str]"],
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[["profile"], None]:
    """An ``on_trace_ready`` that writes ``<worker>.<time in ns>.pt.trace.json[.gz]`` into a directory for TensorBoard.

    ``worker_name`` should differ between the processes of a job; default: ``<hostname>_<pid>``.
    """
    directory = os.fspath(dir_name)

    def handler(prof: "profile") -> None:
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise FolderError(f"tensorboard_trace_handler: the folder {directory!r} cannot be made: {error}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(directory, name))

    return handler
