"""Parameters, gradients and optimizer state of the open window, for :mod:`lanescope.tensor_identities`.

The observer records which tensors operators take. Only Python knows whether a tensor is a
parameter or an optimizer's state. So each module is examined at its first call in a window, and each optimizer after
its first step, as in torch.profiler.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, Optional, Set, Tuple

from . import _core, _torch

_PARAMETER, _GRADIENT, _OPTIMIZER_PARAMETER, _OPTIMIZER_GRADIENT, _OPTIMIZER_STATE = range(1, 6)  # spool::TensorRole

_owners: Set[int] = set()
_hook: Optional[Any] = None  # of torch.optim


def hold(owner: object) -> None:
    """``owner`` has opened a window that records identities of tensors."""
    torch = _torch.loaded_torch()
    note = _torch.tensor_function()
    if torch is None or note is None:
        return
    _owners.add(id(owner))
    kinds = (torch.Tensor, torch.nn.Parameter)
    _core.listen_to_modules(functools.partial(_note_module, note, kinds))
    _add_hook(functools.partial(_note_optimizer, note, kinds, weakref.WeakSet()))


def release(owner: object) -> None:
    """The window of ``owner`` has closed."""
    _owners.discard(id(owner))
    if not _owners:
        _core.listen_to_modules(None)
        _remove_hook()


def _add_hook(note_optimizer: Callable[..., None]) -> None:
    global _hook
    _remove_hook()
    register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if register is not None:
        _hook = register(functools.partial(_core.call_unrecorded, note_optimizer))


def _remove_hook() -> None:
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None


def _note(note: Callable[[int, int], None], kinds: Tuple[type, ...], value: Any, role: int) -> bool:
    if type(value) not in kinds:  # as torch.profiler: no subclasses
        return False
    note(value._cdata, role)
    return True


def _note_module(note: Callable[[int, int], None], kinds: Tuple[type, ...], module: Any) -> None:
    for parameter in list(module._parameters.values()):
        if _note(note, kinds, parameter, _PARAMETER):
            _note(note, kinds, parameter.grad, _GRADIENT)


def _note_optimizer(
    note: Callable[[int, int], None], kinds: Tuple[type, ...], seen: "weakref.WeakSet[Any]", optimizer: Any, *_: Any
) -> None:
    try:
        if optimizer in seen:
            return
        seen.add(optimizer)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if _note(note, kinds, parameter, _OPTIMIZER_PARAMETER):
                    _note(note, kinds, parameter.grad, _OPTIMIZER_GRADIENT)
                    for value in list(optimizer.state.get(parameter, {}).values()):
                        _note(note, kinds, value, _OPTIMIZER_STATE)
    except Exception:  # an optimizer of the program's own making; never fail its step
        return
