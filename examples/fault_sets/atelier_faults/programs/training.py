"""Training: logs, loaders, files, agents, a function with a backward pass of its own, a search for the step size."""

import os
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset


@recorded(stacks=True)
@pair
def entropy_of_all_words_for_the_log(s, good):
    """A language model learns. How sure it is goes into the log, at every hundredth step."""
    tokens, width, words = s.pick(2048, 16), s.pick(512, 16), s.pick(64_000, 50)
    model = tower(width, width, 4, words).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, words, (tokens,), device=s.device)
    metrics, count, lines = {}, [0], []

    def watch(scores):
        with torch.no_grad():
            chances = scores.log_softmax(dim=-1)
            metrics["entropy"] = -(chances.exp() * chances).sum(dim=-1).mean()

    def step():
        writes = count[0] % 100 == 0
        count[0] += 1
        scores = model(x).float()
        loss = F.cross_entropy(scores, labels)
        if writes or not good:
            watch(scores)
        if writes:
            lines.append(f"step {count[0]}: entropy {metrics['entropy'].item():.3f}")
        return update(optimizer, loss)

    return step


class Thumbnails(Dataset):
    def __init__(self, count, side):
        self.pixels = np.random.default_rng(0).integers(0, 255, (count, 3, side, side), dtype=np.uint8)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return torch.from_numpy(self.pixels[index, :, ::-1].copy()), index % 10


@recorded(stacks=True, active=2)
@pair
def workers_started_for_each_epoch(s, good):
    """A small set of pictures, read by two workers. A step is a whole epoch of four batches."""
    rows, side = s.pick(64, 4), s.pick(64, 8)
    loader = DataLoader(Thumbnails(4 * rows, side), batch_size=rows, num_workers=2, persistent_workers=good,
                        multiprocessing_context="fork")
    model = nn.Sequential(nn.Flatten(), tower(3 * side * side, s.pick(2048, 16), 3, 10)).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        total = 0.0
        for pictures, labels in loader:
            x = pictures.to(s.device).to(half(s.device)) / 255
            total += float(update(optimizer, F.cross_entropy(model(x).float(), labels.to(s.device))))
        return total

    return step


@recorded(stacks=True, active=3)
@pair
def a_file_for_each_sample(s, good):
    """Measurements of 512 patients lie on the disk. A batch is 256 of them."""
    count, rows, size = s.pick(512, 8), s.pick(256, 4), s.pick(2048, 16)
    folder = tempfile.mkdtemp(prefix="patients_")
    table = np.random.default_rng(0).random((count, size), dtype=np.float32)
    if good:
        np.save(os.path.join(folder, "all.npy"), table)
        table = np.load(os.path.join(folder, "all.npy"), mmap_mode="r")
    else:
        for number, row in enumerate(table):
            np.save(os.path.join(folder, f"{number:05}.npy"), row)
    dice = np.random.default_rng(1)
    model = tower(size, s.pick(2048, 16), 3, 1).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def read(numbers):
        if good:
            return table[np.sort(numbers)]
        return np.stack([np.load(os.path.join(folder, f"{number:05}.npy")) for number in np.sort(numbers)])

    def step():
        with record_function("read_batch"):
            batch = torch.from_numpy(read(dice.choice(count, rows, replace=False)))
        with record_function("train"):
            x = batch.to(s.device).to(half(s.device))
            return float(update(optimizer, model(x).float().square().mean()))

    return step


class Actor:
    """Acts with a copy of the learner's network. Its weights come as arrays, as if it were far away."""

    def __init__(self, network):
        self.network = network.requires_grad_(False).eval()

    def set_weights(self, weights):
        self.network.load_state_dict({name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
                                      for name, value in weights.items()})

    @torch.inference_mode()
    def act(self, seen):
        return self.network(seen).argmax(dim=1)


@recorded(stacks=True)
@pair
def weights_reach_the_actor_by_the_cpu(s, good):
    """Actor and learner share a GPU. After each update the actor gets the learner's weights."""
    seen, width, actions, rows = s.pick(128, 8), s.pick(2048, 16), 16, s.pick(4096, 8)
    learner = tower(seen, width, 5, actions).to(s.device)
    actor = Actor(tower(seen, width, 5, actions).to(s.device))
    optimizer = torch.optim.SGD(learner.parameters(), lr=1e-4)
    x = torch.randn(rows, seen, device=s.device)

    def get_weights():
        weights = learner.state_dict()
        return weights if good else {name: value.cpu().numpy() for name, value in weights.items()}

    def step():
        with record_function("act"):
            acted = actor.act(x)
        with record_function("learn"), torch.autocast(s.device, torch.bfloat16, enabled=s.device == "cuda"):
            values = learner(x).float().gather(1, acted.clone()[:, None])
            loss = update(optimizer, (values - 1).square().mean())
        with record_function("sync_weights"):
            actor.set_weights(get_weights())
        return loss

    return step


class Choice(torch.autograd.Function):
    """A softmax with a temperature, written by hand."""

    @staticmethod
    def forward(ctx, scores, heat):
        chances = torch.softmax(scores / heat, dim=-1)
        ctx.save_for_backward(chances)
        ctx.heat = heat
        return chances

    @staticmethod
    def backward(ctx, grad):
        chances, = ctx.saved_tensors
        jacobian = torch.diag_embed(chances) - chances.unsqueeze(-1) * chances.unsqueeze(-2)
        return torch.bmm(jacobian, grad.unsqueeze(-1)).squeeze(-1) / ctx.heat, None


class ChoiceByFormula(Choice):
    @staticmethod
    def backward(ctx, grad):
        chances, = ctx.saved_tensors
        return chances * (grad - (grad * chances).sum(dim=-1, keepdim=True)) / ctx.heat, None


@recorded(stacks=True)
@pair
def jacobian_made_in_backward(s, good):
    """Each sample chooses softly among 256 prototypes."""
    rows, width, prototypes = s.pick(4096, 8), s.pick(2048, 16), s.pick(256, 8)
    model = tower(width, width, 3, prototypes).to(s.device, half(s.device))
    kept = torch.randn(prototypes, 64, device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    choose = ChoiceByFormula.apply if good else Choice.apply

    def step():
        mixed = choose(model(x).float(), 0.5) @ kept
        return update(optimizer, mixed.square().mean())

    return step


@recorded(stacks=True, active=3)
@pair
def gradients_made_for_each_trial(s, good):
    """Steepest descent: six lengths of the step are tried, and the one with the least loss is taken."""
    rows, width = s.pick(8192, 8), s.pick(2048, 16)
    model = tower(width, width, 3, 100).to(s.device, half(s.device))
    weights = list(model.parameters())
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, 100, (rows,), device=s.device)
    lengths = [0.01 * 0.5 ** number for number in range(6)]
    choices = torch.tensor(lengths, device=s.device, dtype=half(s.device))

    def closure():
        model.zero_grad()
        loss = F.cross_entropy(model(x).float(), labels)
        loss.backward()
        return loss.detach()

    @torch.no_grad()
    def loss_only():
        return F.cross_entropy(model(x).float(), labels)

    def step():
        loss = closure()
        downhill, start, tried = [weight.grad for weight in weights], [weight.detach().clone() for weight in weights], []
        with record_function("line_search"):
            for length in lengths:
                with torch.no_grad():
                    torch._foreach_copy_(weights, start)
                    torch._foreach_add_(weights, downhill, alpha=-length)
                tried.append(loss_only() if good else closure())
        best = choices[torch.stack(tried).argmin()]
        with torch.no_grad():
            torch._foreach_copy_(weights, torch._foreach_sub(start, torch._foreach_mul(downhill, best)))
        return loss

    return step
