"""What the fields of an event are made of: intervals, kernels, Python values of inputs, defaults."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple

if TYPE_CHECKING:
    field = property
else:

    class field:
        """A property that an assignment to one object's attribute overrides, as with torch's plain attributes."""

        def __init__(self, read: Callable[[Any], Any]) -> None:
            self.read = read
            self.__doc__ = read.__doc__

        def __get__(self, event: Any, owner: Any = None) -> Any:
            return self if event is None else self.read(event)


def shapes_and_memory(row: Any) -> str:
    """The end of a repr(): the row's shapes and memory, if they were recorded."""
    text = f", shapes {row.input_shapes}" if row.input_shapes else ""
    for name, count in (("CPU", row.cpu_memory_usage), ("device", row.device_memory_usage)):
        text += f", {name} memory {count} B" if count else ""
    return text


class Interval(NamedTuple):
    """Microseconds since the start of the recorded window."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """Device work that an operator started; ``duration`` in microseconds."""

    name: str
    device: int
    duration: float


@functools.lru_cache(maxsize=4096)
def concrete_value(text: str) -> Any:
    """The value of one of "Concrete Inputs": "[4, 3]", "2.5", "True", "inf"; None for "", which is a tensor."""
    if text == "":
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return float(text)
    except ValueError:
        return text


def copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


# What FunctionEvent() takes by name, with torch's defaults.
FIELD_DEFAULTS: Dict[str, Any] = dict(
    overload_name=None, fwd_thread=None, input_shapes=None, stack=None, scope=0, use_device=None, cpu_memory_usage=0,
    device_memory_usage=0, is_async=False, is_remote=False, sequence_nr=-1, node_id=-1, device_type=None,
    device_index=0, device_resource_id=None, is_legacy=False, flops=None, trace_name=None, concrete_inputs=None,
    kwinputs=None, is_user_annotation=False, is_python_function=False, activity_type=None, metadata_json=None, metadata=None,
    flow_id=None, flow_type=None, flow_start=None, external_id=0, linked_correlation_id=0, structured_input_shapes=None, structured_input_strides=None,
    input_dtypes=None, python_id=-1, python_parent_id=-1, python_module_id=-1, event_metadata=None, kernels=[], cpu_children=[], cpu_parent=None, args={},
)  # fmt: skip
