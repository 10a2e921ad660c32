"""Sound, series of measurements, agents, several models at once."""

import math
import mmap
import multiprocessing
import queue
import threading

import numpy as np
import torch
from common import captured, half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@pair
def running_total_by_triangle(s, good):
    """Series of 8192 measurements: running totals are taken, then a network reads them."""
    series, length, width = s.pick(1024, 8), s.pick(8192, 32), s.pick(2048, 16)
    x = torch.rand(series, length, device=s.device)
    triangle = torch.ones(length, length, device=s.device).triu()
    model = tower(length, width, 3, 10).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def step():
        with record_function("totals"):
            totals = x.cumsum(dim=1) if good else x @ triangle
        return update(optimizer, model((totals / length).to(half(s.device))).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def spectrogram_on_the_cpu(s, good):
    """Twelve clips of five seconds come from the disk as waves. A network reads their spectrograms."""
    rows, length, size = s.pick(12, 2), s.pick(80_000, 800), s.pick(512, 64)
    waves = s.pinned(torch.randn(rows, length))
    window = torch.hann_window(size, device=s.device if good else "cpu")
    channels = s.pick(64, 4)
    model = nn.Sequential(nn.Conv2d(1, channels, 5, stride=2), nn.ReLU(), nn.Conv2d(channels, channels, 3, stride=2), nn.ReLU(),
                          nn.Conv2d(channels, 10, 3)).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def spectrogram(wave):
        parts = torch.stft(wave, size, hop_length=size // 4, window=window, return_complex=True)
        return torch.log1p(parts.abs().square())

    def step():
        with record_function("features"):
            if good:
                x = spectrogram(waves.to(s.device, non_blocking=True))
            else:
                x = spectrogram(waves).to(s.device)
        return float(update(optimizer, model(x[:, None].to(half(s.device))).float().square().mean()))

    return step


class CartPole:
    """A pole on a cart, as in the usual benchmark."""

    def __init__(self, number):
        self.place, self.speed, self.angle, self.turn = 0.0, 0.0, 0.01 * (number % 7), 0.0

    def act(self, action):
        force, sine, cosine = (10.0 if action else -10.0), math.sin(self.angle), math.cos(self.angle)
        inner = (force + 0.05 * self.turn * self.turn * sine) / 1.1
        turning = (9.8 * sine - cosine * inner) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        pushing = inner - 0.05 * turning * cosine / 1.1
        self.place += 0.02 * self.speed
        self.speed += 0.02 * pushing
        self.angle += 0.02 * self.turn
        self.turn += 0.02 * turning
        if abs(self.angle) > 0.2 or abs(self.place) > 2.4:
            self.place, self.speed, self.angle, self.turn = 0.0, 0.0, 0.01, 0.0
        return self.place, self.speed, self.angle, self.turn


class ManyCartPoles:
    """The same for many at once."""

    def __init__(self, count):
        self.state = np.zeros((4, count))
        self.state[2] = 0.01 * (np.arange(count) % 7)

    def act(self, actions):
        place, speed, angle, turn = self.state
        force, sine, cosine = np.where(actions, 10.0, -10.0), np.sin(angle), np.cos(angle)
        inner = (force + 0.05 * turn * turn * sine) / 1.1
        turning = (9.8 * sine - cosine * inner) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        pushing = inner - 0.05 * turning * cosine / 1.1
        new = self.state + 0.02 * np.stack([speed, pushing, turn, turning])
        over = (np.abs(new[2]) > 0.2) | (np.abs(new[0]) > 2.4)
        new[:, over] = np.array([0.0, 0.0, 0.01, 0.0])[:, None]
        self.state = new
        return new.T


@recorded(stacks=True, active=3)
@pair
def environments_in_turn(s, good):
    """An agent acts in 768 environments for two moments; its policy runs on the GPU."""
    count, width = s.pick(768, 6), s.pick(2048, 16)
    policy = tower(4, width, 3, 2).to(s.device, half(s.device)).eval()
    many, single = ManyCartPoles(count), [CartPole(number) for number in range(count)]
    sent = s.pinned(torch.zeros(count, 4))

    def act(actions):
        if good:
            return many.act(np.array(actions))
        return np.array([cart.act(action) for cart, action in zip(single, actions)])

    @torch.inference_mode()
    def step():
        for _ in range(2):
            actions = policy(sent.to(s.device, non_blocking=True).to(half(s.device))).argmax(dim=1).tolist()
            with record_function("environments"):
                sent.copy_(torch.from_numpy(act(actions)))
        return sent.mean()

    return step


@recorded(stacks=True)
@pair
def streams_waited_for_in_turn(s, good):
    """Four small models answer the same requests. Each is captured in a graph and has a stream of its own."""
    width, rows, layers, cuda = s.pick(1024, 16), s.pick(32, 4), s.pick(96, 4), s.device == "cuda"
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    streams, replays = [torch.cuda.Stream() if cuda else None for _ in range(4)], []
    with torch.inference_mode():
        for stream in streams:
            model = nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width, bias=False), nn.Tanh())])
            model = model.to(s.device, half(s.device)).eval()
            replays.append(captured(s, lambda model=model: model(x), stream))

    @torch.inference_mode()
    def step():
        answers = []
        for stream, replay in zip(streams, replays):
            if not cuda:
                answers.append(replay())
                continue
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                answers.append(replay())
            if not good:
                stream.synchronize()
        if cuda and good:
            for stream in streams:
                stream.synchronize()
        return torch.stack(answers).float().mean(dim=(1, 2))

    return step


@recorded(stacks=True, active=3)
@pair
def samples_through_a_queue(s, good):
    """A thread makes samples of measurements and hands them over."""
    rows, size = s.pick(384, 4), s.pick(256, 8)
    made = np.random.default_rng(0).random((rows, size), dtype=np.float32)
    given, sent = queue.Queue(2 if good else 2 * rows), s.pinned(torch.empty(rows, size))
    model = tower(size, s.pick(2048, 16), 4, 10).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def produce():
        while True:
            if good:
                given.put(made * 2)
                continue
            for row in made:
                given.put(row * 2)

    threading.Thread(target=produce, daemon=True, name="producer").start()

    def step():
        with record_function("next_batch"):
            batch = given.get() if good else np.stack([given.get() for _ in range(rows)])
        sent.copy_(torch.from_numpy(batch))
        x = sent.to(s.device, non_blocking=True)
        return float(update(optimizer, model(x.to(half(s.device))).float().square().mean()))

    return step


def work(pipe, other, shared, frames):
    """In a process of its own: answers each request with the frames, or puts them into shared memory."""
    other.close()
    place = None if shared is None else np.frombuffer(shared, dtype=np.uint8).reshape(frames.shape)
    try:
        while pipe.recv() is not None:
            if place is None:
                pipe.send(frames)
            else:
                place[:] = frames
                pipe.send(True)
    except (EOFError, OSError):  # the program ended
        pass


@recorded(stacks=True)
@pair
def frames_through_a_pipe(s, good):
    """A worker process prepares the next frames while the GPU works on these."""
    rows, side = s.pick(16, 2), s.pick(512, 16)
    frames = np.random.default_rng(0).integers(0, 255, (rows, side, side, 3), dtype=np.uint8)
    shared = mmap.mmap(-1, frames.nbytes) if good else None
    here, there = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(target=work, args=(there, here, shared, frames), daemon=True).start()
    there.close()
    staging = s.pinned(torch.empty(frames.shape, dtype=torch.uint8))
    view = staging.numpy()
    model = tower(side * 3, s.pick(1024, 16), 3, 10).to(s.device, half(s.device)).eval()
    here.send(True)

    @torch.inference_mode()
    def step():
        with record_function("next_frames"):
            got = here.recv()
            view[:] = np.frombuffer(shared, dtype=np.uint8).reshape(frames.shape) if good else got
            here.send(True)
        x = staging.to(s.device, non_blocking=True).flatten(2).to(half(s.device)) / 255
        return float(model(x).float().mean())

    return step
