"""Which tensor is which, for torch.profiler's memory categories.

torch.profiler._memory_profiler.MemoryProfile finds parameters, gradients, activations and so on in a tree of operators,
allocations and calls of modules and optimizers. Here is that tree, made from a trace that was recorded with
``record_shapes``, ``profile_memory`` and ``with_stack``; so the categories are found by torch's own code.
docs/decisions/tensor_identities.md.
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import _core
from .memory_timeline import device_name, memory_rows

_INPUT, _PARAMETER, _GRADIENT, _OPTIMIZER_PARAMETER, _OPTIMIZER_GRADIENT, _OPTIMIZER_STATE, _LOST = range(7)
_ENGINE = "autograd::engine::evaluate_function: "


class Tensor:
    """A tensor in an operator's inputs, with what torch reads of its ``_TensorMetadata``.

    ``sizes``, ``strides`` and ``dtype`` are those of the bytes that it spans.
    """

    id: Optional[int] = None
    allocation_id: Optional[int] = None

    def __init__(self, torch: Any, address: int, implementation: int, nbytes: int, device: Any) -> None:
        self.storage_data_ptr = address or None
        self.impl_ptr = implementation
        self.device = device
        self.layout = torch.strided if nbytes >= 0 else torch.sparse_coo
        self.dtype = torch.uint8
        self.sizes = [max(nbytes, 0)]
        self.strides = [1]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # torch asks isinstance()
        return importlib.import_module("torch._C._profiler")._TensorMetadata


class Operator:
    def __init__(self, name: str, scope: Any, inputs: List[Any]) -> None:
        self.name = name
        self.scope = scope
        self.inputs = inputs


class Allocation:
    """An allocation, or a free when ``alloc_size`` is negative."""

    id: Optional[int] = None
    allocation_id: Optional[int] = None

    def __init__(self, args: Dict[str, Any], device: Any) -> None:
        self.ptr = int(args["Addr"])
        self.alloc_size = int(args["Bytes"])
        self.total_allocated = int(args.get("Total Allocated", 0))
        self.total_reserved = int(args.get("Total Reserved", 0))
        self.device = device


class Module:
    def __init__(self) -> None:
        self.parameters: List[Tuple[str, Tensor, Optional[Tensor]]] = []


class Optimizer:
    def __init__(self) -> None:
        self.parameters: List[Tuple[Tensor, Optional[Tensor], List[Tuple[str, Tensor]]]] = []


class Call:
    """The call of a module, or what an optimizer had after its first step; not both."""

    def __init__(self, module: Optional[Module], optimizer: Optional[Optimizer]) -> None:
        self.module = module
        self.optimizer = optimizer


class Event:
    """A node of the tree. ``typed`` is its kind and the fields of that kind."""

    def __init__(self, kind: Any, fields: Any, name: str, thread: int, start_ns: int, end_ns: int) -> None:
        self.typed = (kind, fields)
        self.tag = kind
        self.extra_fields = fields
        self.name = name
        self.start_tid = thread
        self.start_time_ns = start_ns
        self.end_time_ns = end_ns
        self.duration_time_ns = end_ns - start_ns
        self.parent: Optional["Event"] = None
        self.children: List["Event"] = []

    def __repr__(self) -> str:
        return f"<lanescope event {self.name!r}>"


class EventTree:
    """The operators, allocations and calls of a trace, for ``torch.profiler._memory_profiler.MemoryProfile``."""

    def __init__(self, trace: _core.Trace, torch: Any) -> None:
        self.lost_tensors = 0  # recorded without identity: there were too many
        self._trace = trace
        self._torch = torch
        self._types: Any = importlib.import_module("torch._C._profiler")
        self._devices: Dict[Tuple[int, int], Any] = {}
        events = sorted(self._events(), key=lambda event: (event.start_time_ns, -event.end_time_ns))
        self._roots = _nest(events)
        for event in events:
            self._find_scope(event)
        identify(events)

    def experimental_event_tree(self) -> List[Event]:
        """The outermost events, by torch's name."""
        return self._roots

    def _events(self) -> Iterator[Event]:
        trace, kinds = self._trace, self._types._EventType
        base_ns, names, categories = trace.base_time_ns, trace.names, trace.categories
        starts, durations, tracks, name_ids = trace.start_ns, trace.dur_ns, trace.track_id, trace.name_id
        scopes = {"cpu_op": self._types.RecordScope.FUNCTION, "user_annotation": self._types.RecordScope.USER_SCOPE}
        for row, category in enumerate(trace.category_id):
            kind = categories[category]
            if kind not in scopes and kind != "python_function":
                continue
            args = trace.args(row)
            tensors = _as_list(args.get("lanescope tensors"))
            if kind == "python_function" and not tensors:
                continue
            start_ns, name = base_ns + int(starts[row]), names[name_ids[row]]
            end_ns, thread = start_ns + int(durations[row]), int(tracks[row])
            called = [self._tensor(tensor) for tensor in tensors if _PARAMETER <= tensor[0] <= _OPTIMIZER_STATE]
            for call in _calls([tensor[0] for tensor in tensors if _PARAMETER <= tensor[0] <= _OPTIMIZER_STATE], called):
                yield Event(kinds.PyCall, call, name, thread, start_ns, start_ns)
            self.lost_tensors += sum(tensor[0] == _LOST for tensor in tensors)
            if kind in scopes:
                operator = Operator(name, scopes[kind], self._inputs(args, tensors))
                event = Event(kinds.TorchOp, operator, name, thread, start_ns, end_ns)
                event.forward_thread = args.get("Fwd thread id", 0)  # type: ignore[attr-defined]
                yield event
        for row in memory_rows(trace):
            args = trace.instant_args(row)
            time_ns = base_ns + int(trace.instant_time_ns[row])
            device = self._device(int(args.get("Device Type", 0)), int(args.get("Device Id", -1)))
            yield Event(
                kinds.Allocation, Allocation(args, device), "[memory]", int(trace.instant_track_id[row]), time_ns, time_ns
            )

    def _device(self, kind: int, index: int) -> Any:
        if (kind, index) not in self._devices:
            self._devices[kind, index] = self._torch.device(device_name(kind, index))
        return self._devices[kind, index]

    def _tensor(self, fields: List[int]) -> Tensor:
        _, _, _, address, implementation, nbytes, device_type, device_index = fields
        return Tensor(self._torch, address, implementation, nbytes, self._device(device_type, device_index))

    def _inputs(self, args: Dict[str, Any], tensors: List[List[int]]) -> List[Any]:
        """Tensors, lists of tensors, scalars, and None for the rest."""
        kinds, values = _as_list(args.get("Input type")), _as_list(args.get("Concrete Inputs"))
        inputs: List[Any] = [None] * len(kinds)
        for at, kind in enumerate(kinds):
            if kind == "TensorList":
                inputs[at] = []
            elif kind == "Scalar":
                inputs[at] = _scalar(values[at])
        for tensor in tensors:
            role, at, item = tensor[:3]
            if role not in (_INPUT, _LOST) or at >= len(inputs):
                continue
            if role == _LOST:
                inputs[at] = None
            elif item == 0:
                inputs[at] = self._tensor(tensor)
            elif isinstance(inputs[at], list):
                inputs[at].append(self._tensor(tensor))
            elif item == 1:  # a list whose shapes found no room
                inputs[at] = [self._tensor(tensor)]
        return inputs

    def _find_scope(self, event: Event) -> None:
        """A trace does not say which operators torch ran as backward functions; FunctionEvent.scope says how they are found."""
        fields = event.typed[1]
        if not isinstance(fields, Operator) or fields.scope != self._types.RecordScope.FUNCTION:
            return
        in_engine = event.parent is not None and event.parent.name == _ENGINE + event.name
        if in_engine or (event.forward_thread and not event.name.startswith(_ENGINE)):  # type: ignore[attr-defined]
            fields.scope = self._types.RecordScope.BACKWARD_FUNCTION


def _as_list(value: Any) -> List[Any]:
    if isinstance(value, str):
        value = json.loads(value)
    return value if isinstance(value, list) else []


def _scalar(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    if text in ("True", "False"):
        return text == "True"
    kinds: Tuple[Callable[[str], Any], ...] = (int, float, lambda number: complex(number.replace("i", "j")))
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _calls(roles: List[int], tensors: List[Tensor]) -> List[Call]:
    module, optimizer = Module(), Optimizer()
    for role, tensor in zip(roles, tensors):
        if role == _PARAMETER:
            module.parameters.append(("", tensor, None))
        elif role == _GRADIENT and module.parameters:
            module.parameters[-1] = (*module.parameters[-1][:2], tensor)
        elif role == _OPTIMIZER_PARAMETER:
            optimizer.parameters.append((tensor, None, []))
        elif role == _OPTIMIZER_GRADIENT and optimizer.parameters:
            optimizer.parameters[-1] = (optimizer.parameters[-1][0], tensor, optimizer.parameters[-1][2])
        elif role == _OPTIMIZER_STATE and optimizer.parameters:
            optimizer.parameters[-1][2].append(("", tensor))
    found = []
    if module.parameters:
        found.append(Call(module, None))
    if optimizer.parameters:
        found.append(Call(None, optimizer))
    return found


def _nest(events: List[Event]) -> List[Event]:
    """Sets parents and children: an event is inside the innermost operator of its thread that is open then."""
    roots: List[Event] = []
    open_of: Dict[int, List[Event]] = {}
    for event in events:
        stack = open_of.setdefault(event.start_tid, [])
        while stack and stack[-1].end_time_ns < event.start_time_ns:
            stack.pop()
        if stack:
            event.parent = stack[-1]
            stack[-1].children.append(event)
        else:
            roots.append(event)
        if isinstance(event.typed[1], Operator):
            stack.append(event)
    return roots


def _identified(events: List[Event]) -> Iterator[Tuple[Any, Optional[int], bool]]:
    """Everything that has an address, in order: (object, its TensorImpl or None, whether it is a free)."""
    for event in events:
        fields = event.typed[1]
        if isinstance(fields, Allocation):
            yield fields, None, fields.alloc_size < 0
            continue
        found: List[Any] = []
        if isinstance(fields, Operator):
            for value in fields.inputs:
                found += value if isinstance(value, list) else [value]
        elif fields.module is not None:
            for _, parameter, gradient in fields.module.parameters:
                found += [parameter, gradient]
        else:
            for parameter, gradient, state in fields.optimizer.parameters:
                found += [parameter, gradient, *(tensor for _, tensor in state)]
        for value in found:
            if type(value) is Tensor:
                yield value, value.impl_ptr, False


def identify(events: List[Event]) -> None:
    """Sets ``allocation_id`` and ``id`` of tensors and allocations, in order of time.

    An allocation id means a storage from its allocation to its free, because addresses are used again. An id is a tensor: all
    storages that one TensorImpl had, and all that share a storage with those. Allocations that no operator took as a
    tensor's storage have no id.
    """
    things = list(_identified(events))
    storage_of: Dict[Tuple[Any, Any], int] = {}
    count = 0
    of_tensors: Set[int] = set()
    for thing, implementation, is_free in things:
        address = thing.ptr if isinstance(thing, Allocation) else thing.storage_data_ptr
        place = (address or None, thing.device)
        if place not in storage_of:
            count += 1
            storage_of[place] = count
        thing.allocation_id = storage_of[place]
        if is_free:
            del storage_of[place]
        if implementation is not None:
            of_tensors.add(thing.allocation_id)
    first_storage: Dict[int, int] = {}  # of a TensorImpl
    pairs: Set[Tuple[int, int]] = set()
    for thing, implementation, _ in things:
        if implementation is not None:
            first = first_storage.setdefault(implementation, thing.allocation_id)
            pairs.add((min(first, thing.allocation_id), max(first, thing.allocation_id)))
    id_of: Dict[int, int] = {}
    next_id = 0
    for low, high in sorted(pairs):
        if low not in id_of:
            id_of[low] = next_id
            next_id += 1
        id_of.setdefault(high, id_of[low])
    for thing, _, _ in things:
        if thing.allocation_id in of_tensors:
            thing.id = id_of[thing.allocation_id]


def memory_profile(trace: _core.Trace) -> Tuple[Any, int]:
    """torch's MemoryProfile of a trace, and the number of tensors that are missing in it. Imports torch."""
    torch = importlib.import_module("torch")
    tree = EventTree(trace, torch)
    return importlib.import_module("torch.profiler._memory_profiler").MemoryProfile(tree), tree.lost_tensors
