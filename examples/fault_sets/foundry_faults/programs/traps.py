"""Programs that look faulty and are not. Each says what would be false of it."""

import threading
import time

import torch
from common import half, recorded, tower, trap
from torch.profiler import record_function


@recorded(stacks=True, active=4)
@trap
def paced_by_a_clock(s, good):
    """A robot is steered a hundred times a second, no faster. Not: the GPU idles, so launch faster, overlap or compile."""
    period = 0.01
    policy = tower(256, s.pick(2048, 16), 4, 16).to(s.device, half(s.device)).eval()
    seen = torch.randn(64, 256, device=s.device, dtype=half(s.device))
    due = [time.monotonic()]

    @torch.inference_mode()
    def step():
        with record_function("wait_for_the_clock"):
            due[0] = max(due[0] + period, time.monotonic())
            time.sleep(max(0.0, due[0] - time.monotonic()))
        with record_function("act"):
            return policy(seen).float().tanh().mean().item()

    return step


@recorded(stacks=True, active=4)
@trap
def gradients_zeroed_for_a_graph(s, good):
    """One graph holds forward and backward of a micro batch; four replays add up their gradients. Not: set_to_none, which breaks it."""
    rows, width, parts = s.pick(1024, 4), s.pick(2048, 16), 4
    model = tower(width, width, 5, 100).to(s.device, half(s.device))
    weights = list(model.parameters())
    pictures = torch.randn(parts, rows, width, device=s.device, dtype=half(s.device))
    x = torch.zeros_like(pictures[0])
    for weight in weights:
        weight.grad = torch.zeros_like(weight)

    def micro_step():
        loss = model(x).float().square().mean() / parts
        loss.backward()
        return loss.detach()

    replay, held = micro_step, None
    if s.device == "cuda":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                micro_step()
        torch.cuda.current_stream().wait_stream(side)
        held = torch.cuda.CUDAGraph()
        with torch.cuda.graph(held):
            held_loss = micro_step()

        def replay():
            held.replay()
            return held_loss

    def step():
        with record_function("zero"):
            torch._foreach_zero_([weight.grad for weight in weights])
        with record_function("micro_batches"):
            for part in pictures:
                x.copy_(part)
                loss = replay()
        with record_function("update"), torch.no_grad():
            torch._foreach_add_(weights, [weight.grad for weight in weights], alpha=-1e-5)
        return loss.clone()

    return step


@recorded(stacks=True, active=4)
@trap
def slow_copy_hidden_behind_the_step(s, good):
    """A thread sends the next batch from pageable memory on its own stream, while the GPU computes far longer. Not: pin it."""
    rows, width = s.pick(8192, 8), s.pick(4096, 16)
    model = tower(width, width, 10, 100).to(s.device, half(s.device)).eval()
    host = torch.randn(s.pick(1024, 4), width).to(half(s.device))
    stream = torch.cuda.Stream() if s.device == "cuda" else None
    wanted, ready, box = threading.Semaphore(1), threading.Semaphore(0), []

    def sender():
        while True:
            wanted.acquire()
            with torch.cuda.stream(stream):  # without effect for None
                batch = host.to(s.device)
            box.append(batch)
            ready.release()

    threading.Thread(target=sender, daemon=True).start()

    @torch.inference_mode()
    def step():
        with record_function("next_batch"):
            ready.acquire()
            batch = box.pop()
            wanted.release()
        with record_function("compute"):
            x = batch.repeat(rows // len(batch), 1)
            return model(x).float().mean().item()

    return step
