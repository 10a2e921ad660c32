"""Training loops."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


@recorded(memory=True)
@pair
def optimizer_built_each_step(s, good):
    """The optimizer is made inside the loop, so it begins with empty states each time."""
    width = s.pick(512, 64)
    model = tower(width, width, 24, width).to(s.device)
    once = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(512, 32), width, device=s.device)

    def step():
        optimizer = once if good else torch.optim.AdamW(model.parameters(), lr=1e-4)
        return update(optimizer, model(x).square().mean())

    return step


@recorded(stacks=True)
@pair
def create_graph_left_on(s, good):
    """create_graph=True is left from a gradient penalty that is no longer there."""
    width = s.pick(2048, 128)
    model = tower(width, width, 12, width).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(128, 16), width, device=s.device)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward(create_graph=not good)
        optimizer.step()
        return loss.detach()

    return step


@pair
def similarity_of_all_pairs(s, good):
    """Contrastive learning: the cosine of each text with each picture, by broadcasting both to all pairs."""
    rows, width = s.pick(1024, 64), s.pick(256, 32)
    text, picture = (nn.Linear(width, width).to(s.device, half(s.device)) for _ in range(2))
    optimizer = torch.optim.AdamW([*text.parameters(), *picture.parameters()], lr=1e-3)
    words, images = (torch.randn(rows, width, device=s.device, dtype=half(s.device)) for _ in range(2))
    same = torch.arange(rows, device=s.device)

    def step():
        a, b = text(words), picture(images)
        if good:
            logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T
        else:
            logits = F.cosine_similarity(a[:, None], b[None], dim=-1)
        return update(optimizer, F.cross_entropy(logits.float() * 20, same))

    return step


@recorded(marks=True, shapes=True)
@pair
def chunks_never_detached(s, good):
    """A recurrent model reads a long text in 10 chunks. Its state is handed on with its history."""
    width, rows = s.pick(256, 64), s.pick(64, 8)
    cell = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh()).to(s.device)
    optimizer = torch.optim.AdamW(cell.parameters(), lr=1e-4)
    text = torch.randn(10, 4, rows, width, device=s.device)

    def step():
        optimizer.zero_grad()
        state = torch.zeros(rows, width, device=s.device)
        for chunk in text:
            state = state.detach() if good else state
            for word in chunk:
                state = cell(torch.cat([word, state], dim=1))
            loss = state.square().mean()
            loss.backward(retain_graph=not good)
        optimizer.step()
        return loss.detach()

    return step
