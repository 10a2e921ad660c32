"""record_function inside torch.compile: as with torch's, the graph leaves it out and does not break."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Optional

from ._after_import import after_import
from ._core import record_function


def _range_in_graph(name: str, args: Optional[str] = None) -> ContextManager[None]:
    """What Dynamo traces instead of the C type."""
    return contextlib.nullcontext()


def _register() -> None:
    try:
        from torch._dynamo import decorators

        substitute: Any = decorators.substitute_in_graph
        substitute(record_function, is_embedded_type=True, skip_signature_check=True)(_range_in_graph)
    except Exception:  # a torch without it (before 2.6): a range inside a compiled function splits its graph
        pass


def watch() -> None:
    """Registers now, or when the program imports Dynamo."""
    after_import("torch._dynamo", _register)
