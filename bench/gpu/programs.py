#!/usr/bin/env python3
"""The programs that the GPU benchmarks record: the same work for every profiler, with fixed seeds.

    python3 bench/gpu/programs.py --list
    python3 bench/gpu/programs.py mlp_train --device cuda --steps 20

Each program is a function step() that does the same work each time it is called and ends with the device idle, unless
its group is "endless". Without a CUDA device everything but CUDA graphs runs on the CPU (--device cpu --small); DDP programs
run under torchrun. Ranges are torch's own record_function, so that no program knows who records it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
from torch.profiler import record_function

UNAVAILABLE = 3  # exit code: the program cannot run here; the last line of output says why


class Unavailable(Exception):
    """The program cannot run on this machine."""


@dataclasses.dataclass
class Setting:
    device: str  # cpu, cuda
    small: bool  # sizes for a test on a CPU

    def pick(self, full: int, small: int) -> int:
        return small if self.small else full

    def finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def nothing() -> None:
    pass


@dataclasses.dataclass
class Program:
    step: Callable[[], None]
    reset: Callable[[], None] = nothing  # back to the state before the first step, where steps depend on each other
    close: Callable[[], None] = nothing


@dataclasses.dataclass
class Entry:
    make: Callable[[Setting], Program]
    group: str
    warm_steps: int = 3  # run before recording; 0: a cold start
    needs_cuda: bool = False
    shifting: str = ""  # operators (a regular expression) that may move from one step to another, see differences.py


def compiled(function: Callable[..., Any], setting: Setting, wanted: bool) -> Callable[..., Any]:
    return torch.compile(function) if wanted else function


# -- the ladder: matmul + add --------------------------------------------------------------------------------------------


def matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.add(torch.matmul(x, w), b)


def ladder(size: int, batch: int, compile_: bool) -> Callable[[Setting], Program]:
    def make(setting: Setting) -> Program:
        shape = (batch, size, size) if batch else (size, size)
        x, w, b = (torch.randn(shape, dtype=torch.bfloat16, device=setting.device) for _ in range(3))
        function = compiled(matmul_add, setting, compile_)

        def step() -> None:
            with record_function("matmul_add"):
                function(x, w, b)
            setting.finish()

        return Program(step)

    return make


# -- layers and models ---------------------------------------------------------------------------------------------------


def linear(setting: Setting) -> Program:
    size = setting.pick(2048, 64)
    layer = torch.nn.Linear(size, size, device=setting.device, dtype=torch.bfloat16)
    x = torch.randn(size, size, device=setting.device, dtype=torch.bfloat16)

    @torch.inference_mode()
    def step() -> None:
        layer(x)
        setting.finish()

    return Program(step)


def mlp_model(setting: Setting) -> torch.nn.Module:
    width = setting.pick(1024, 32)
    layers: List[torch.nn.Module] = []
    for _ in range(2):
        layers += [torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)]
    return torch.nn.Sequential(*layers).to(setting.device, torch.bfloat16)


def mlp(compile_: bool) -> Callable[[Setting], Program]:
    def make(setting: Setting) -> Program:
        model = mlp_model(setting)
        x = torch.randn(setting.pick(2048, 16), setting.pick(1024, 32), device=setting.device, dtype=torch.bfloat16)
        function = compiled(model, setting, compile_)

        @torch.inference_mode()
        def step() -> None:
            function(x)
            setting.finish()

        return Program(step)

    return make


def mlp_cudagraph(setting: Setting) -> Program:
    model = mlp_model(setting)
    x = torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        y = model(x)

    kept = (model, x)  # the graph reads their memory; nothing else would keep it

    def step() -> None:
        with record_function("replay"):
            graph.replay()
        y.float().sum()
        setting.finish()
        assert kept

    return Program(step)


def mlp_train(setting: Setting) -> Program:
    model = mlp_model(setting)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    rows, width = setting.pick(2048, 16), setting.pick(1024, 32)
    x = torch.randn(rows, width, device=setting.device, dtype=torch.bfloat16)
    y = torch.randn(rows, width, device=setting.device, dtype=torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad()
        with record_function("forward"):
            loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        setting.finish()

    return Program(step)


# -- a Llama-like model --------------------------------------------------------------------------------------------------


def llama_model(setting: Setting) -> Any:
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        raise Unavailable(f"transformers is not installed ({error})") from None
    config = LlamaConfig(hidden_size=setting.pick(1024, 64), intermediate_size=setting.pick(2816, 128),
                         num_hidden_layers=setting.pick(12, 2), num_attention_heads=setting.pick(16, 4),
                         num_key_value_heads=setting.pick(8, 2), vocab_size=setting.pick(32000, 128))
    return LlamaForCausalLM(config).to(setting.device, torch.bfloat16).eval()


def tokens(setting: Setting, rows: int, length: int) -> torch.Tensor:
    return torch.randint(0, setting.pick(32000, 128), (rows, length)).to(setting.device)


def llama_prefill(setting: Setting) -> Program:
    model = llama_model(setting)
    prompt = tokens(setting, 2, setting.pick(512, 8))

    @torch.inference_mode()
    def step() -> None:
        with record_function("prefill"):
            model(input_ids=prompt, use_cache=False)
        setting.finish()

    return Program(step)


DECODE_STEPS = 128  # then the cache starts again with the prompt


def llama_decode(setting: Setting) -> Program:
    model = llama_model(setting)
    prompt = tokens(setting, 1, setting.pick(64, 4))
    state: Dict[str, Any] = {}

    @torch.inference_mode()
    def reset() -> None:
        out = model(input_ids=prompt, use_cache=True)
        state.update(cache=out.past_key_values, last=out.logits[:, -1:].argmax(-1), done=0)
        setting.finish()

    @torch.inference_mode()
    def step() -> None:
        if state["done"] == DECODE_STEPS:
            reset()
        with record_function("decode"):
            out = model(input_ids=state["last"], past_key_values=state["cache"], use_cache=True)
            state["last"] = out.logits[:, -1:].argmax(-1)
        state["done"] += 1
        setting.finish()

    reset()
    return Program(step, reset)


# -- input pipeline, streams, several GPUs -------------------------------------------------------------------------------


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count: int, side: int) -> None:
        self.count, self.side = count, side

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        picture = torch.full((3, self.side, self.side), float(index % 7), dtype=torch.float32)
        return picture, index % 10


def cnn_dataloader(setting: Setting) -> Program:
    cuda = setting.device == "cuda"
    layers: List[torch.nn.Module] = []
    channels = 3
    for width in (32, 64, 128) if not setting.small else (4, 8):
        layers += [torch.nn.Conv2d(channels, width, 3, stride=2, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
        channels = width
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 10)]
    model = torch.nn.Sequential(*layers).to(setting.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loader = torch.utils.data.DataLoader(Pictures(100_000, setting.pick(64, 16)), batch_size=setting.pick(32, 4),
                                         num_workers=2, pin_memory=cuda)
    batches: List[Iterator[Any]] = [iter(loader)]

    def step() -> None:
        pictures, labels = next(batches[0])
        pictures = pictures.to(setting.device, non_blocking=True)
        labels = labels.to(setting.device, non_blocking=True)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
        setting.finish()

    def reset() -> None:
        batches[0] = iter(loader)

    return Program(step, reset, batches.clear)


def streams(setting: Setting) -> Program:
    """Two side streams that wait for each other through events; on the CPU the same operators one after the other."""
    size = setting.pick(1024, 32)
    make = dict(device=setting.device, dtype=torch.bfloat16)
    a, b, host = torch.randn(size, size, **make), torch.randn(size, size, **make), torch.randn(size, size)
    if setting.device != "cuda":
        def step() -> None:
            with record_function("side_work"):
                c = a @ b
                d = host.to(torch.bfloat16) @ b
            (c + d).relu()

        return Program(step)
    host = host.pin_memory()
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    copied, multiplied = torch.cuda.Event(), torch.cuda.Event()
    landed, product = torch.empty(size, size, device="cuda"), torch.empty(size, size, **make)

    def cuda_step() -> None:
        main = torch.cuda.current_stream()
        first.wait_stream(main)
        second.wait_stream(main)
        with record_function("side_work"):
            with torch.cuda.stream(first):
                landed.copy_(host, non_blocking=True)
                copied.record()
            with torch.cuda.stream(second):
                torch.matmul(a, b, out=product)
                second.wait_event(copied)
                product.add_(landed)
                multiplied.record()
        main.wait_event(multiplied)
        product.relu_()
        landed.zero_()
        setting.finish()

    return Program(cuda_step)


def long_products(setting: Setting) -> Program:
    """Few long kernels, queued as far ahead as the device allows: it is never idle, also between steps."""
    size = setting.pick(16384, 32)
    a, b = (torch.randn(size, size, device=setting.device, dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(a)

    @torch.inference_mode()
    def step() -> None:
        torch.matmul(a, b, out=product)

    return Program(step, close=setting.finish)


def transformer_model(setting: Setting) -> torch.nn.Module:
    width = setting.pick(512, 16)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(setting.device)


def ddp(transformer: bool) -> Callable[[Setting], Program]:
    def make(setting: Setting) -> Program:
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        if "WORLD_SIZE" not in os.environ:
            raise Unavailable("a DDP program runs under torchrun (compare.py --ranks N starts it)")
        rank = int(os.environ["LOCAL_RANK"])
        if setting.device == "cuda":
            torch.cuda.set_device(rank)
            dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
        else:
            dist.init_process_group("gloo")
        model = transformer_model(setting) if transformer else mlp_model(setting).float()
        wrapped = DistributedDataParallel(model, device_ids=[rank] if setting.device == "cuda" else None)
        optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-4)
        shape = ((setting.pick(16, 2), setting.pick(128, 8), setting.pick(512, 16)) if transformer
                 else (setting.pick(1024, 8), setting.pick(1024, 32)))
        x = torch.randn(shape, device=setting.device)

        def step() -> None:
            optimizer.zero_grad()
            with record_function("forward"):
                loss = wrapped(x).square().mean()
            loss.backward()
            optimizer.step()
            setting.finish()

        return Program(step, close=dist.destroy_process_group)

    return make


# -- the list ------------------------------------------------------------------------------------------------------------


def programs(small: bool = False) -> Dict[str, Entry]:
    """Name to program, in the order in which they are worth running. `small` has smaller sizes, also in the names."""
    found: Dict[str, Entry] = {}
    for size in (16, 64) if small else (64, 4096):
        for mode in ("eager", "compile"):
            for start, warm in (("warm", 3), ("cold", 0)):
                found[f"{size}_bf16_{start}_{mode}"] = Entry(ladder(size, 0, mode == "compile"), "ladder", warm)
    side = 8 if small else 64
    found[f"b8x{side}_bf16_warm_eager"] = Entry(ladder(side, 8, False), "ladder")
    found[f"b8x{side}_bf16_cold_eager"] = Entry(ladder(side, 8, False), "ladder", 0)
    found["linear_eager"] = Entry(linear, "layers")
    found["mlp_eager"] = Entry(mlp(False), "layers")
    found["mlp_compile"] = Entry(mlp(True), "layers")
    found["mlp_cudagraph"] = Entry(mlp_cudagraph, "layers", needs_cuda=True)
    found["mlp_train"] = Entry(mlp_train, "models")
    found["llama_prefill"] = Entry(llama_prefill, "models")
    found["llama_decode"] = Entry(llama_decode, "models")
    # Unpacking a batch from a worker's queue: when it arrives decides in which step the main thread unpacks it.
    found["cnn_dataloader"] = Entry(cnn_dataloader, "models", shifting=r"aten::(empty|set_|resize_)$")
    found["streams"] = Entry(streams, "models")
    found["long_products"] = Entry(long_products, "endless")
    found["ddp_mlp"] = Entry(ddp(False), "ddp", 5)  # DDP forms its buckets again after the first steps
    found["ddp_transformer"] = Entry(ddp(True), "ddp", 5)
    return found


def select(text: str, small: bool) -> List[str]:
    """Names from "all", group names and program names with commas between.

    "all" leaves out DDP, which needs --ranks, and what never ends.
    """
    entries = programs(small)
    chosen: List[str] = []
    for word in text.split(","):
        names = [name for name, entry in entries.items()
                 if word in (name, entry.group) or (word == "all" and entry.group not in ("ddp", "endless"))]
        if not names:
            raise SystemExit(f"expected all, a group ({', '.join(sorted({e.group for e in entries.values()}))}) or one of "
                             f"{', '.join(entries)}; found {word!r}")
        chosen += [name for name in names if name not in chosen]
    return chosen


def make(name: str, device: str, small: bool) -> Program:
    """The program after its warm steps. Raises Unavailable when this machine cannot run it."""
    entry = programs(small)[name]
    if device == "cuda" and not torch.cuda.is_available():
        raise Unavailable("torch sees no CUDA device")
    if entry.needs_cuda and device != "cuda":
        raise Unavailable("needs a CUDA device")
    torch.manual_seed(0)
    program = entry.make(Setting(device, small))
    for _ in range(entry.warm_steps):
        program.step()
    return program


def run(name: str, device: str, small: bool, steps: int, seconds: Optional[float]) -> int:
    try:
        program = make(name, device, small)
    except Unavailable as error:
        print(json.dumps({"unavailable": str(error)}))
        return UNAVAILABLE
    begin, done = time.perf_counter(), 0
    print("running", flush=True)
    while done < steps if seconds is None else time.perf_counter() - begin < seconds:
        program.step()
        done += 1
    took = time.perf_counter() - begin
    program.close()
    print(f"{name}: {done} steps in {took:.3f} s, {1e6 * took / max(done, 1):.1f} us a step, {device}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="see --list")
    parser.add_argument("--list", action="store_true", help="print the names, one a line, with their groups")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--small", action="store_true", help="sizes for a quick run on a CPU")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, help="run for that long instead of --steps")
    parser.add_argument("--out", help="file for the result as JSON")
    arguments = parser.parse_args()
    if arguments.list or arguments.program is None:
        for name, entry in programs(arguments.small).items():
            print(f"{name:<26}{entry.group:<10}{'needs CUDA' if entry.needs_cuda else ''}")
        return 0
    names = select(arguments.program, arguments.small)
    codes = {name: run(name, arguments.device, arguments.small, arguments.steps, arguments.seconds) for name in names}
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump({"device": arguments.device, "exit_codes": codes}, file)
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
