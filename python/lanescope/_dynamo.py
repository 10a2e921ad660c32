"""record_function inside torch.compile: as with torch's, the graph leaves it out and does not break. In a function that
torch.jit.script compiles: torch's own class, whose ranges the observer sees."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, ContextManager, Optional

from ._after_import import after_import
from ._core import record_function, set_of_record_function


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


class _NameInTorchScript:
    """``record_function._jit_override_qualname``: TorchScript asks a class for it, and then takes its compiled class of that name."""

    def __get__(self, instance: Optional[object], owner: type) -> str:
        script: Any = sys.modules.get("torch.jit._script")  # lanescope itself never imports torch
        if owner is not record_function or script is None:
            raise AttributeError("_jit_override_qualname")
        try:
            internal: Any = sys.modules["torch._jit_internal"]
            compiled: Any = sys.modules["torch.autograd.profiler"].record_function
            name: Any = internal._qualified_name(compiled)
            script._compile_and_register_class(compiled, internal.createResolutionCallbackForClassMethods(compiled), name)
        except Exception as error:  # another torch: TorchScript says that it cannot compile the class
            raise AttributeError("_jit_override_qualname") from error
        return str(name)


def watch() -> None:
    """Registers now, or when the program imports Dynamo."""
    set_of_record_function("_jit_override_qualname", _NameInTorchScript())
    after_import("torch._dynamo", _register)
