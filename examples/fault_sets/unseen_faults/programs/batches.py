"""Where batches come from: replay buffers, loaders, threads."""

import hashlib
import random
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch.utils.data import DataLoader, TensorDataset


@recorded(shapes=False, marks=False)
@pair
def replay_of_separate_tensors(s, good):
    """Q-learning whose replay buffer is a list of transitions, each four small tensors."""
    seen, count, rows = 32, s.pick(4096, 512), s.pick(512, 64)
    net, other = (tower(seen, s.pick(256, 64), 2, 4).to(s.device) for _ in range(2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    states, nexts = (torch.randn(count, seen, device=s.device) for _ in range(2))
    actions, rewards = torch.randint(0, 4, (count,), device=s.device), torch.randn(count, device=s.device)
    fields = (states, actions, rewards, nexts)
    transitions = [tuple(field[row].clone() for field in fields) for row in range(count)]
    chance = random.Random(0)

    def sample():
        if good:
            rows_taken = torch.randint(0, count, (rows,), device=s.device)
            return tuple(field[rows_taken] for field in fields)
        return tuple(torch.stack(field) for field in zip(*chance.sample(transitions, rows)))

    def step():
        state, action, reward, after = sample()
        with torch.no_grad():
            wanted = reward + 0.99 * other(after).amax(dim=1)
        return update(optimizer, F.mse_loss(net(state).gather(1, action[:, None])[:, 0], wanted))

    return step


@pair
def loader_over_gpu_tensors(s, good):
    """The whole set is on the GPU. A DataLoader takes each row from it and puts the rows together again."""
    count, rows, width = s.pick(65536, 1024), s.pick(512, 64), s.pick(512, 64)
    x, y = torch.randn(count, width, device=s.device), torch.randint(0, 10, (count,), device=s.device)
    model = tower(width, width, 3, 10).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def batches():
        while True:
            if good:
                for taken in torch.randperm(count, device=s.device).split(rows):
                    yield x[taken], y[taken]
            else:
                yield from DataLoader(TensorDataset(x, y), batch_size=rows, shuffle=True)

    source = batches()

    def step():
        pictures, labels = next(source)
        return update(optimizer, F.cross_entropy(model(pictures), labels))

    return step


@recorded(stacks=True, shapes=False)
@pair
def polling_for_a_batch(s, good):
    """A thread prepares the next batch. The loop asks every 10 ms whether it is there."""
    width = s.pick(1024, 128)
    model = tower(width, width, 4, width).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(s.pick(512, 64), width, device=s.device)
    pool, raw = ThreadPoolExecutor(1), bytes(s.pick(8, 4) << 20)
    waiting = [pool.submit(hashlib.sha256, raw)]

    def step():
        future = waiting.pop()
        while not good and not future.done():
            time.sleep(0.01)
        future.result()
        waiting.append(pool.submit(hashlib.sha256, raw))
        return update(optimizer, model(x).square().mean())

    return step
