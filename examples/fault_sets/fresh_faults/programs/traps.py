"""Programs that look faulty and are not. The docstring says what must not be said."""

import torch
import torch.nn.functional as F
from common import recorded, tower, trap, update
from torch import nn


@trap
def twin_critics(s, good):
    """Two critics of one shape see the same input, as SAC wants it. Not: the forward pass runs twice, use its result again."""
    width = s.pick(1024, 64)
    critics = [tower(width, width, 5, 1).to(s.device) for _ in range(2)]
    optimizer = torch.optim.Adam([p for critic in critics for p in critic.parameters()], lr=1e-3)
    x, wanted = torch.randn(s.pick(4096, 64), width, device=s.device), torch.randn(s.pick(4096, 64), 1, device=s.device)

    def step():
        first, second = critics[0](x), critics[1](x)
        return update(optimizer, F.mse_loss(first, wanted) + F.mse_loss(second, wanted))

    return step


@recorded(shapes=True, marks=False)
@trap
def cells_that_hear_themselves(s, good):
    """Each round's input is sampled from the round before. Not: batch the rounds, run the whole sequence in one call."""
    width, rows = s.pick(512, 64), s.pick(64, 8)
    cell, head, words = nn.LSTMCell(width, width), nn.Linear(width, 256), nn.Embedding(256, width)
    for part in (cell, head, words):
        part.to(s.device)
    start = torch.zeros(rows, dtype=torch.long, device=s.device)

    @torch.inference_mode()
    def step():
        token, state = start, None
        for _ in range(32):
            state = cell(words(token), state)
            noise = torch.rand(rows, 256, device=s.device).clamp_(min=1e-9)
            token = (head(state[0]) - (-noise.log()).log()).argmax(dim=1)
        return state[0].mean()

    return step


@recorded(stacks=True)
@trap
def loss_read_once(s, good):
    """The loss is read once a step, where the GPU has work for all of it. Not: removing the wait saves time."""
    width = s.pick(4096, 128)
    model = tower(width, width, 6, width).to(s.device, torch.bfloat16 if s.device == "cuda" else torch.float32)
    x = torch.randn(s.pick(4096, 128), width, device=s.device, dtype=next(model.parameters()).dtype)
    optimizer, seen = torch.optim.SGD(model.parameters(), lr=1e-4), []

    def step():
        loss = update(optimizer, model(x).float().square().mean())
        seen.append(loss.item())
        return loss

    return step


@trap
def whole_order_is_used(s, good):
    """A ranking loss needs all scores in order. Not: topk or max instead of sort."""
    rows, items = s.pick(512, 16), s.pick(16_384, 1024)
    model = tower(64, 128, 2, items).to(s.device)
    x, gains = torch.randn(rows, 64, device=s.device), torch.rand(rows, items, device=s.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        scores, order = model(x).sort(dim=1, descending=True)
        wanted = gains.gather(1, order)
        loss = (scores.flip(1).logcumsumexp(dim=1).flip(1) - scores) * wanted
        return update(optimizer, loss.mean())

    return step


@recorded(memory=True)
@trap
def prefetched_batches(s, good):
    """The next batch is copied from pinned memory on a stream of its own. Not: pin, overlap, copies hold up the GPU."""
    width, rows = s.pick(2048, 128), s.pick(8192, 128)
    model = tower(width, width, 8, 10).to(s.device, torch.bfloat16 if s.device == "cuda" else torch.float32)
    kind = next(model.parameters()).dtype
    batches = [s.pinned(torch.randn(rows, width, dtype=kind)) for _ in range(3)]
    label = torch.zeros(rows, dtype=torch.long, device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    side = torch.cuda.Stream() if s.device == "cuda" else None
    ready, turn = [batches[0].to(s.device)], [0]

    def fetch():
        turn[0] += 1
        if side is None:
            ready[0] = batches[turn[0] % 3].to(s.device)
            return
        with torch.cuda.stream(side):
            ready[0] = batches[turn[0] % 3].to(s.device, non_blocking=True)

    def step():
        if side is not None:
            torch.cuda.current_stream().wait_stream(side)
        x = ready[0]
        if side is not None:
            x.record_stream(torch.cuda.current_stream())
        fetch()
        return update(optimizer, F.cross_entropy(model(x).float(), label))

    return step


@recorded(shapes=False)
@trap
def scaler_as_documented(s, good):
    """Mixed precision by the book: autocast, GradScaler, unscale, clip. Not: remove the scaler's or the clipping's waits."""
    width = s.pick(2048, 64)
    model = tower(width, width, 8, 10).to(s.device)
    x, label = torch.randn(s.pick(4096, 32), width, device=s.device), torch.zeros(s.pick(4096, 32), dtype=torch.long)
    label = label.to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(s.device, enabled=s.device == "cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast(s.device, torch.float16 if s.device == "cuda" else torch.bfloat16):
            loss = F.cross_entropy(model(x), label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step
