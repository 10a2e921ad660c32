"""Training steps with one fault each that no rule of `lanescope explain` knows; they run on a CPU.

Each function prepares what it needs and returns its step. EXPECTED says, written before anything was recorded, who holds
the time and what kind of time it is: `owner` and `kind` are regular expressions for the first owner that explain names.
"""

from __future__ import annotations

import copy
import gc
import io
import json
import os
import random
import tempfile
import threading
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import nn

Step = Callable[[], Any]

CODE = r"Python or other code"
CPU = r"CPU time"
EXPECTED: Dict[str, Tuple[str, str]] = {
    "repeat_interleave": (r"aten::repeat_interleave", CPU),
    "quadratic_distances": (r"aten::cdist", CPU),
    "one_sample_at_a_time": (r"loop of (64|6[0-9]) rounds.*aten::(linear|relu|gelu)", CPU),
    "dropout_in_python": (r"code (between|before|after)|Python of", CODE),
    "log_to_disk": (r"code (between|before|after)|Python of", CODE),
    "lock_of_a_thread": (r"code (between|before|after)|Python of", r"thread"),
    "eigh_each_step": (r"aten::linalg_eigh", CPU),
    "clip_one_by_one": (r"loop of \d+ rounds.*(linalg_vector_norm|aten::norm|aten::mul_|aten::item)", CPU),
    "tokenizing": (r"code (between|before|after)|Python of", CODE),
    "average_one_by_one": (r"loop of \d+ rounds.*(aten::mul_|aten::add_|aten::lerp_)", CPU),
    "metric_over_history": (r"aten::(sort|argsort|cat)", CPU),
    "checkpoint_every_4": (r"code|aten::(copy_|clone|to)|Python of", r"in one step"),
    "wide_embedding": (r"EmbeddingBackward0|aten::(_foreach|add|mul)|Optimizer.step", CPU),
    "softmax_by_hand": (r"aten::(exp|div|sum|sub|amax|max)", CPU),
    "copy_of_the_model": (r"loop of \d+ .*aten::(clone|detach|empty)|aten::clone|code", r"CPU time|code"),
    "dot_products_in_loops": (r"loop.*aten::(dot|select|mul|sum)", CPU),
    "one_hot_product": (r"aten::(one_hot|matmul|mm|to|scatter)", CPU),
    "unique_each_step": (r"aten::(_unique2|unique)", CPU),
    "double_by_accident": (r"aten::(linear|matmul|addmm|mm)|MmBackward0|AddmmBackward0", CPU),
    "mask_by_index": (r"aten::(index|nonzero)", CPU),
    "collect_each_step": (r"code (between|before|after)|Python of", CODE),
    "numpy_in_the_loss": (r"code (between|before|after)|Python of", CODE),
    "dataset_in_the_loop": (r"DataLoader", r"DataLoader|code"),
    "cell_by_cell": (r"loop of \d+ rounds.*(aten::(lstm|gru)_cell|aten::linear)|loop of \d+ x aten::(lstm|gru)_cell", CPU),
}


class Training:
    """A small MLP with its optimizer: the part of each step that is no fault."""

    def __init__(self, width: int = 256, layers: int = 3, batch: int = 64) -> None:
        torch.manual_seed(0)
        parts: List[nn.Module] = []
        for _ in range(layers):
            parts += [nn.Linear(width, width), nn.ReLU()]
        self.model = nn.Sequential(*parts)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x, self.y = torch.randn(batch, width), torch.randn(batch, width)

    def step(self, x: torch.Tensor | None = None) -> torch.Tensor:
        loss = nn.functional.mse_loss(self.model(self.x if x is None else x), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def repeat_interleave() -> Step:
    train, features = Training(), torch.randn(2048, 512)

    def step() -> Any:
        train.step()
        return features.repeat_interleave(8, dim=0).sum()

    return step


def quadratic_distances() -> Step:
    train, bank = Training(), torch.randn(2500, 64)

    def step() -> Any:
        train.step()
        return torch.cdist(bank, bank).mean()

    return step


def one_sample_at_a_time() -> Step:
    train = Training()

    def step() -> Any:
        out = torch.stack([train.model(row) for row in train.x])
        loss = nn.functional.mse_loss(out, train.y)
        return loss.item()

    return step


def dropout_in_python() -> Step:
    train = Training()

    def step() -> Any:
        mask = [[1.0 if random.random() > 0.1 else 0.0 for _ in range(256)] for _ in range(64)]
        return train.step(train.x * torch.tensor(mask))

    return step


def log_to_disk() -> Step:
    train, folder = Training(), tempfile.mkdtemp()

    def step() -> Any:
        loss = train.step().item()
        with open(os.path.join(folder, "log.json"), "a", encoding="utf-8") as file:
            for _ in range(300):
                file.write(json.dumps({"loss": loss, "weights": [loss] * 20}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    return step


def lock_of_a_thread() -> Step:
    train, lock, big = Training(), threading.Lock(), torch.randn(700, 700)
    wake, took = threading.Event(), threading.Event()

    def monitor() -> None:
        while True:
            wake.wait()
            wake.clear()
            with lock:
                took.set()
                for _ in range(6):
                    torch.mm(big, big)

    threading.Thread(target=monitor, daemon=True).start()

    def step() -> Any:
        loss = train.step()
        wake.set()
        took.wait()
        took.clear()
        with lock:
            return loss.item()

    return step


def eigh_each_step() -> Step:
    train, grams = Training(), torch.randn(200, 200)
    grams = grams @ grams.T

    def step() -> Any:
        train.step()
        return torch.linalg.eigh(grams)[0].sum()

    return step


def clip_one_by_one() -> Step:
    train = Training(width=32, layers=60)

    def step() -> Any:
        loss = nn.functional.mse_loss(train.model(train.x), train.y)
        train.optimizer.zero_grad()
        loss.backward()
        for _ in range(5):
            for parameter in train.model.parameters():
                norm = parameter.grad.norm().item()
                parameter.grad.mul_(min(1.0, 1.0 / (norm + 1e-6)))
        train.optimizer.step()

    return step


def tokenizing() -> Step:
    train = Training()
    text = " ".join(f"word{i % 997}" for i in range(20000))

    def step() -> Any:
        vocabulary: Dict[str, int] = {}
        tokens = [vocabulary.setdefault(word.lower().strip(".,"), len(vocabulary)) for word in text.split()]
        return train.step(), len(tokens)

    return step


def average_one_by_one() -> Step:
    train = Training(width=32, layers=60)
    average = copy.deepcopy(train.model)

    def step() -> Any:
        train.step()
        with torch.no_grad():
            for _ in range(4):
                for mine, theirs in zip(average.parameters(), train.model.parameters()):
                    mine.mul_(0.999).add_(theirs, alpha=0.001)

    return step


def metric_over_history() -> Step:
    train = Training()
    scores = [torch.randn(150_000)]

    def step() -> Any:
        train.step()
        scores.append(torch.randn(64))
        ordered = torch.cat(scores).sort(descending=True).values
        return ordered.cumsum(0)[-1]

    return step


def checkpoint_every_4() -> Step:
    train = Training(width=1024)
    count = [0]

    def step() -> Any:
        train.step()
        count[0] += 1
        if count[0] % 4 == 0:
            for _ in range(6):
                torch.save(train.model.state_dict(), io.BytesIO())

    return step


def wide_embedding() -> Step:
    table = nn.Embedding(60_000, 64)
    optimizer = torch.optim.SGD(table.parameters(), lr=1e-3)
    index = torch.randint(0, 60_000, (256,))

    def step() -> Any:
        optimizer.zero_grad()
        table(index).square().mean().backward()
        optimizer.step()

    return step


def softmax_by_hand() -> Step:
    train, scores = Training(), torch.randn(2000, 1000)

    def step() -> Any:
        train.step()
        shifted = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
        return (shifted / shifted.sum(dim=1, keepdim=True)).mean()

    return step


def copy_of_the_model() -> Step:
    train = Training(width=128, layers=60)

    def step() -> Any:
        train.step()
        for _ in range(3):
            copy.deepcopy(train.model)

    return step


def dot_products_in_loops() -> Step:
    train, rows = Training(), torch.randn(24, 128)

    def step() -> Any:
        train.step()
        gram = torch.empty(24, 24)
        for i in range(24):
            for j in range(24):
                gram[i, j] = rows[i].dot(rows[j])
        return gram.sum()

    return step


def one_hot_product() -> Step:
    train, table = Training(), torch.randn(4000, 128)
    index = torch.randint(0, 4000, (1024,))

    def step() -> Any:
        train.step()
        return (nn.functional.one_hot(index, 4000).float() @ table).sum()

    return step


def unique_each_step() -> Step:
    train, ids = Training(), torch.randint(0, 50_000, (400_000,))

    def step() -> Any:
        train.step()
        return torch.unique(ids).numel()

    return step


def double_by_accident() -> Step:
    train = Training(width=768, batch=256)
    train.model.double()
    train.x, train.y = train.x.double(), train.y.double()
    return train.step


def mask_by_index() -> Step:
    train, field = Training(), torch.randn(3000, 1000)

    def step() -> Any:
        train.step()
        return field[field > 0.5].sum()

    return step


def collect_each_step() -> Step:
    train = Training()
    kept = [{"a": [i]} for i in range(150_000)]

    def step() -> Any:
        train.step()
        gc.collect()
        return len(kept)

    return step


def numpy_in_the_loss() -> Step:
    train, scores = Training(), torch.randn(400_000)

    def step() -> Any:
        train.step()
        array = scores.detach().numpy()
        array.copy().sort(kind="mergesort")
        return torch.from_numpy(array[:10])

    return step


class SlowSet(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float((index * k) % 7) for k in range(256)])


def dataset_in_the_loop() -> Step:
    train = Training()
    batches = iter(torch.utils.data.DataLoader(SlowSet(), batch_size=64))

    def step() -> Any:
        return train.step(next(batches))

    return step


def cell_by_cell() -> Step:
    cell = nn.LSTMCell(64, 64)
    sequence = torch.randn(100, 16, 64)

    def step() -> Any:
        hidden = torch.zeros(16, 64), torch.zeros(16, 64)
        with torch.no_grad():
            for row in sequence:
                hidden = cell(row, hidden)
        return hidden[0].sum()

    return step
