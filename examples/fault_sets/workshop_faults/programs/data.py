"""What brings data to the GPU: files, threads, streams."""

import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@pair
def recording_read_whole_for_a_second(s, good):
    """Each sample is one second of a recording of two minutes, which lies in a file."""
    rows, second, length = s.pick(12, 2), s.pick(16_000, 64), s.pick(2_000_000, 1000)
    folder = tempfile.TemporaryDirectory()
    paths = [os.path.join(folder.name, f"{number}.npy") for number in range(rows)]
    for path in paths:
        np.save(path, np.random.default_rng(0).integers(-1000, 1000, length).astype(np.int16))
    channels = s.pick(64, 4)
    model = nn.Sequential(nn.Conv1d(1, channels, 16, stride=s.pick(16, 2)), nn.ReLU(), nn.Conv1d(channels, channels, 9)).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    sent = s.pinned(torch.empty(rows, 1, second))
    count = [0]

    def cut(path, begin):
        recording = np.load(path, mmap_mode="r") if good else np.load(path)
        return recording[begin:begin + second].astype(np.float32)

    def step():
        count[0] += 1
        with record_function("samples"):
            for number, path in enumerate(paths):
                begin = (count[0] * 7919 + number * 104_729) % (length - second)
                sent[number, 0] = torch.from_numpy(cut(path, begin))
        x = sent.to(s.device, non_blocking=True) / 1000
        return float(update(optimizer, model(x).square().mean()))

    step.folder = folder  # it lives as long as the step
    return step


@recorded(stacks=True, active=3)
@pair
def thread_started_for_each_sample(s, good):
    """Threads turn and crop 96 small pictures of a batch."""
    rows, side = s.pick(96, 4), s.pick(64, 8)
    pictures = np.random.default_rng(0).integers(0, 255, (rows, side, side, 3), dtype=np.uint8)
    batch = s.pinned(torch.empty(rows, side // 2, side // 2, 3, dtype=torch.uint8))
    target = batch.numpy()
    model = tower(side // 2 * (side // 2) * 3, s.pick(1024, 16), 3, 10).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    pool = ThreadPoolExecutor(4) if good else None

    def turn_and_crop(number):
        at = number % (side // 2)
        target[number] = pictures[number, ::-1][at:at + side // 2, at:at + side // 2]

    def some(first):
        for number in range(first, rows, 4):
            turn_and_crop(number)

    def prepare():
        if good:
            list(pool.map(some, range(4)))
            return
        threads = [threading.Thread(target=turn_and_crop, args=(number,)) for number in range(rows)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def step():
        with record_function("prepare"):
            prepare()
        x = batch.to(s.device, non_blocking=True).flatten(1).to(half(s.device)) / 255
        return float(update(optimizer, model(x).float().square().mean()))

    return step


@recorded(stacks=True)
@pair
def copy_stream_waits_for_the_step(s, good):
    """While the GPU works on one batch, a second stream copies the next. Two places on the GPU take turns."""
    width, rows = s.pick(4096, 32), s.pick(16_384, 8)
    with torch.device(s.device):
        model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(4)]).to(half(s.device)).eval()
    batch = s.pinned(torch.randn(rows, width, dtype=half(s.device)))
    places = [torch.empty(rows, width, device=s.device, dtype=half(s.device)).copy_(batch) for _ in range(2)]
    cuda = s.device == "cuda"
    side = torch.cuda.Stream() if cuda else None
    copied, used = [[torch.cuda.Event() if cuda else None for _ in range(2)] for _ in range(2)]
    count = [0]

    def copy_into(other):
        if not cuda:
            places[other].copy_(batch)
            return
        if good:
            side.wait_event(used[other])
        else:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            places[other].copy_(batch, non_blocking=True)
            copied[other].record()

    @torch.inference_mode()
    def step():
        now = count[0] % 2
        count[0] += 1
        if cuda:
            torch.cuda.current_stream().wait_event(copied[now])
        result = model(places[now]).float().mean(dim=1)
        if cuda:
            used[now].record()
        copy_into(1 - now)
        return result

    return step
