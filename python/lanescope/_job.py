"""This process's place in a job of many: its rank, and the process groups of torch.distributed.

Problem: torch.profiler asks when it starts, so a recording that begins before ``init_process_group`` says nothing, and
one that ends after ``destroy_process_group`` cannot ask any more. Idea: use what the launcher wrote into the
environment until torch.distributed knows better. Ask for the groups when a window opens or ends, after
``init_process_group`` and before ``destroy_process_group``, and keep the last answer.

This module never imports torch by itself.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional

MAX_JSON_BYTES = 100_000  # the recorder takes 120 KiB per metadata entry

_lock = threading.RLock()
_known: Optional[Dict[str, Any]] = None  # the last answer of torch.distributed
_listeners: List["weakref.WeakMethod[Callable[[], None]]"] = []
_wrapped = False
_inherited_rank: Optional[str] = None  # RANK of the process that started this one


def whole_number(environ: Mapping[str, str], name: str) -> Optional[int]:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def ignore_launcher(environ: Mapping[str, str]) -> None:
    """The current RANK belongs to the process that started this one."""
    global _inherited_rank
    _inherited_rank = environ.get("RANK")


def launcher_info(environ: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """``rank``, ``world_size`` and ``local_rank`` as torchrun and similar launchers set them; None: not started as a rank."""
    rank, size = whole_number(environ, "RANK"), whole_number(environ, "WORLD_SIZE")
    if rank is None or size is None or rank >= size or environ.get("RANK") == _inherited_rank:
        return None
    info: Dict[str, Any] = {"rank": rank, "world_size": size}
    local_rank = whole_number(environ, "LOCAL_RANK")
    if local_rank is not None:
        info["local_rank"] = local_rank
    return info


def group_info(environ: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """torch.distributed's current state, with the keys of torch.profiler's ``distributedInfo``; None outside of a job."""
    dist, torch = sys.modules.get("torch.distributed"), sys.modules.get("torch")
    if dist is None or torch is None:
        return None
    try:
        if not dist.is_available() or not dist.is_initialized():
            return None
        info: Dict[str, Any] = {
            "backend": dist.get_backend(),
            "rank": dist.get_rank(),
            "world_size": dist.get_world_size(),
        }
    except Exception:  # half set up, or half taken down by another thread
        return None
    # Private parts of torch.distributed change between versions; the rest is useful without them.
    try:
        info["pg_count"] = dist.get_pg_count()
        info["pg_config"] = dist.distributed_c10d._get_all_pg_configs()
    except Exception:
        pass
    try:
        if "nccl" in str(info["backend"]):
            info["nccl_version"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    except Exception:
        pass
    local_rank = (launcher_info(environ) or {}).get("local_rank")
    if local_rank is not None:
        info["local_rank"] = local_rank
    return info


def job_json() -> str:
    """The best answer so far as JSON, within the recorder's limit; empty: not part of a job."""
    global _known
    with _lock:
        _known = group_info(os.environ) or _known
        info = _known or launcher_info(os.environ)
    return "" if info is None else fitting_json(info)


def fitting_json(info: Mapping[str, Any]) -> str:
    """``info`` as JSON of at most MAX_JSON_BYTES: if needed without the groups' ranks, then without the groups."""
    text = json.dumps(info, default=str)
    if len(text) > MAX_JSON_BYTES:
        groups = [{key: value for key, value in group.items() if key != "ranks"} for group in info.get("pg_config", [])]
        text = json.dumps({**info, "pg_config": groups}, default=str)
    if len(text) > MAX_JSON_BYTES:
        text = json.dumps({key: value for key, value in info.items() if key != "pg_config"}, default=str)
    return text


def listen(callback: Callable[[], None]) -> None:
    """Calls ``callback`` (a bound method, held weakly) after process groups are made and before they are destroyed."""
    with _lock:
        _wrap_process_groups()
        _listeners.append(weakref.WeakMethod(callback))


def listen_no_more(callback: Callable[[], None]) -> None:
    with _lock:
        _listeners[:] = [known for known in _listeners if known() not in (None, callback)]


def _notify() -> None:
    with _lock:
        callbacks = [known() for known in _listeners]
    for callback in callbacks:
        try:
            if callback is not None:
                callback()
        except Exception:  # the program's call goes on whatever happens to its trace
            pass


def _wrap_process_groups() -> None:
    """Wraps torch.distributed's functions that make and destroy groups, once; the wrappers stay."""
    global _wrapped
    dist = sys.modules.get("torch.distributed")
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if _wrapped or dist is None or c10d is None:
        return
    _wrapped = True
    for name, around in (("init_process_group", _notify_after), ("destroy_process_group", _notify_before)):
        original = getattr(c10d, name, None)
        if original is None:
            continue
        wrapper = around(original)
        for module in (c10d, dist):
            if getattr(module, name, None) is original:
                setattr(module, name, wrapper)


def _notify_after(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        _notify()
        return result

    return call


def _notify_before(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _notify()
        return function(*args, **kwargs)

    return call
