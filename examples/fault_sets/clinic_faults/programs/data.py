"""Speech, sampling, logs: what stands between the data and the model."""

import math
import os
import subprocess

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


def pad_mask(lengths, longest=None):
    """True where a sequence has ended."""
    longest = lengths.max() if longest is None else longest
    at = torch.arange(longest, device=lengths.device)
    return at[:, None] >= lengths[None, :]


@recorded(stacks=True)
@pair
def pad_mask_asks_for_the_longest(s, good):
    """Speech of various lengths is learnt, sound by sound. While the GPU works, the CPU prepares the next batch."""
    rows, steps, width, signs = s.pick(32, 2), s.pick(400, 20), s.pick(512, 16), s.pick(64, 8)
    encoder = tower(80, width, s.pick(12, 2), signs).to(s.device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-5, fused=s.device == "cuda")
    sounds = torch.randn(steps, rows, 80, device=s.device)
    frames = torch.randint(steps // 2, steps, (rows,))
    frames[0] = steps
    frames = frames.to(s.device)
    truth = torch.randint(0, signs, (steps, rows), device=s.device)
    raw, weights = torch.randn(s.pick(4000, 10), 400), torch.randn(400, 80)

    def next_batch():
        lines = raw @ weights
        return torch.log1p(lines.square_()).sub_(1)

    def step():
        spoken = encoder(sounds)
        ended = pad_mask(frames, len(sounds) if good else None)
        loss = F.cross_entropy(spoken.flatten(0, 1), truth.masked_fill(ended, -100).flatten())
        with record_function("next_batch"):
            lines = [next_batch() for _ in range(s.pick(8, 2))]
        update(optimizer, loss)
        return loss.detach(), lines[-1][0]

    return step


def filter_for(device, old, new):
    """The filter of a change of the sampling rate, as libraries make it: a windowed sinc for each phase."""
    common = math.gcd(old, new)
    old, new = old // common, new // common
    base = min(old, new) * 0.99
    reach = math.ceil(6 * old / base)
    index = torch.arange(-reach, reach + old, device=device, dtype=torch.float32)[None, None] / old
    at = torch.arange(0, -new, -1, device=device, dtype=torch.float32)[:, None, None] / new + index
    at = (at * base).clamp(-6, 6)
    window = torch.cos(at * math.pi / 12).square()
    at = at * math.pi
    kernel = torch.where(at == 0, torch.ones_like(at), torch.sin(at) / at)
    return kernel * window * (base / old), reach, old, new


class Resample(nn.Module):
    """From one sampling rate to another."""

    def __init__(self, device, old, new, good):
        super().__init__()
        self.device, self.rates = device, (old, new)
        self.kept = filter_for(device, old, new) if good else None

    def forward(self, sound):
        kernel, reach, old, new = self.kept or filter_for(self.device, *self.rates)
        parts = F.conv1d(F.pad(sound, (reach, reach + old)), kernel, stride=old)
        return parts.transpose(1, 2).flatten(1)[:, :math.ceil(new * sound.shape[-1] / old)]


@recorded(stacks=True)
@pair
def resampling_kernel_made_each_call(s, good):
    """Speech that comes in pieces of a fifth of a second is brought from 48 to 16 kHz, four calls at a time, and classified."""
    parts = [Resample(s.device, 48_000, rate, good).to(s.device) for rate in (16_000, 22_050, 24_000, 8_000)]
    classify = tower(256, 256, 2, 12).to(s.device).eval()
    sounds = torch.randn(len(parts), 8, 1, s.pick(9600, 2400), device=s.device)

    @torch.inference_mode()
    def step():
        found = []
        for resample, sound in zip(parts, sounds):
            with record_function("resample"):
                brought = resample(sound)
            found.append(classify(brought[:, :256]).softmax(dim=-1).amax(dim=-1))
        return torch.stack(found).mean(dim=1)

    return step


@recorded(stacks=True)
@pair
def features_copied_per_edge(s, good):
    """A graph too large for the GPU: the features lie on the CPU. A sample has 20,000 nodes with 8 edges each."""
    nodes_there, width, count = s.pick(400_000, 200), s.pick(128, 8), s.pick(20_000, 16)
    table = torch.randn(nodes_there, width)
    nodes = torch.randint(0, nodes_there, (count,))
    source = torch.randint(0, count, (count * 8,))
    target = torch.arange(count).repeat_interleave(8).to(s.device)
    source_there = source.to(s.device)
    model = tower(width, 2 * width, 2, 16).to(s.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    labels = torch.randint(0, 16, (count,), device=s.device)

    def fetch():
        if good:
            return table[nodes].to(s.device)[source_there]
        messages = table[nodes[source]].to(s.device)
        return messages

    def step():
        with record_function("fetch"):
            messages = fetch()
        mixed = torch.zeros(count, width, device=s.device).index_add_(0, target, messages)
        return update(optimizer, F.cross_entropy(model(mixed / 8), labels))

    return step


@recorded(stacks=True)
@pair
def one_thread_left_for_host_work(s, good):
    """Eight photographs a step are made smaller on the CPU and go to the GPU. Threads of workers once got in each other's way."""
    count, side, small = s.pick(8, 2), s.pick(512, 32), s.pick(224, 16)
    photographs = torch.rand(count, 3, side, side)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(64, 100)).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    labels = torch.randint(0, 100, (count,), device=s.device)
    place = s.pinned(torch.empty(count, 3, small, small))
    threads = torch.get_num_threads()

    def prepare():
        if not good:
            torch.set_num_threads(1)
        smaller = F.interpolate(photographs, size=(small, small), mode="bilinear", antialias=True)
        place.copy_((smaller - 0.45) / 0.22)
        torch.set_num_threads(threads)  # so that the next program of this process starts as this one did
        return place.to(s.device, non_blocking=True)

    def step():
        with record_function("prepare"):
            x = prepare()
        return update(optimizer, F.cross_entropy(model(x), labels))

    return step


def resident_megabytes(good):
    """Memory of this process."""
    if good:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    said = subprocess.run(["sh", "-c", f"grep VmRSS /proc/{os.getpid()}/status"], capture_output=True, text=True, check=True)
    return int(said.stdout.split()[1]) / 1e3


@recorded(stacks=True)
@pair
def memory_asked_of_a_shell(s, good):
    """Training whose log says how much memory the process uses."""
    width, rows = s.pick(1024, 32), s.pick(2048, 8)
    model = tower(width, width, 6, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    log = []

    def step():
        loss = update(optimizer, model(x).float().square().mean())
        with record_function("log_memory"):
            log.append(resident_megabytes(good))
            del log[:-100]
        return loss

    return step


@recorded(stacks=True)
@pair
def history_shifted_each_step(s, good):
    """Measurements of 32,768 sensors come one after the other; a forecast looks at the last 64 of the 4096 that are remembered."""
    sensors, remembered, seen = s.pick(32_768, 32), s.pick(4096, 128), s.pick(64, 8)
    history = torch.randn(remembered, sensors, device=s.device)
    model = tower(seen, 256, 2, 1).to(s.device).eval()
    measured = torch.randn(sensors, device=s.device)
    last, state = torch.arange(seen, device=s.device), {"history": history, "at": 0}

    def remember_by_cat():
        history = state["history"]
        history = torch.cat([history[1:], measured[None]])
        state["history"] = history
        return history[-seen:]

    def remember_in_ring():
        history, at = state["history"], state["at"]
        history[at] = measured
        state["at"] = (at + 1) % remembered
        return history[(last + (at + 1 - seen)) % remembered]

    @torch.inference_mode()
    def step():
        with record_function("remember"):
            window = remember_in_ring() if good else remember_by_cat()
        return model(window.T).squeeze(1)

    return step


@recorded(stacks=True, active=4)
@pair
def replay_list_stacked_to_sample(s, good):
    """Q-learning from pictures. The replay memory holds the last 1000 of them, 64 of which are drawn each step."""
    held, drawn, side = s.pick(1000, 20), s.pick(64, 4), s.pick(84, 16)
    pictures = torch.randint(0, 256, (held, 4, side, side), dtype=torch.uint8, device=s.device)
    memory = pictures if good else list(pictures.clone().unbind(0))
    model = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                          nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 6)).to(s.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=s.device == "cuda")
    chosen = torch.randperm(held)[:drawn].to(s.device)
    wanted = torch.randn(drawn, 6, device=s.device)

    def sample():
        if good:
            return memory[chosen]
        frames = torch.stack(memory)[chosen]
        return frames

    def step():
        with record_function("sample"):
            frames = sample()
        return update(optimizer, F.smooth_l1_loss(model(frames.float() / 255), wanted))

    return step
