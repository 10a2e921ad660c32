"""Programs whose Python decides by values on the GPU."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


def overlap(boxes, others):
    """Intersection over union of each box with each other."""
    least, most = torch.maximum(boxes[:, None, :2], others[:, :2]), torch.minimum(boxes[:, None, 2:], others[:, 2:])
    common = (most - least).clamp(min=0).prod(dim=2)
    area, areas = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1), (others[:, 2:] - others[:, :2]).prod(dim=1)
    return common / (area[:, None] + areas - common)


def kept_one_by_one(boxes, order):
    kept = []
    while len(order):
        kept.append(order[0])
        order = order[1:]
        order = order[overlap(boxes[kept[-1]][None], boxes[order])[0] <= 0.5]
    return torch.stack(kept)


def kept_of_all(boxes, order):
    over = (overlap(boxes[order], boxes[order]) > 0.5).cpu().numpy()
    gone, kept = over[0] & False, []
    for at, row in enumerate(over):
        if not gone[at]:
            kept.append(at)
            gone |= row
    return order[torch.tensor(kept, device=order.device)]


@recorded(active=4)
@pair
def nms_box_by_box(s, good):
    """A detector keeps the best of the boxes that overlap."""
    count, width = s.pick(256, 48), s.pick(1024, 64)
    corner = torch.rand(count, 2, device=s.device) * 40
    boxes = torch.cat([corner, corner + 10 + torch.rand(count, 2, device=s.device) * 5], dim=1)
    model = tower(width, width, 4, 1).to(s.device)
    features = torch.randn(count, width, device=s.device)

    @torch.no_grad()
    def step():
        order = model(features)[:, 0].argsort(descending=True)
        kept = kept_of_all(boxes, order) if good else kept_one_by_one(boxes, order)
        return boxes[kept]

    return step


@pair
def fixed_point_checked(s, good):
    """A layer that is its own fixed point: iterate until nothing changes."""
    width = s.pick(1024, 64)
    weight = torch.linalg.qr(torch.randn(width, width))[0].to(s.device) * 0.6
    x = torch.randn(s.pick(128, 16), width, device=s.device)

    @torch.no_grad()
    def solve(tolerance=1e-5, most=48):
        z = torch.zeros_like(x)
        for number in range(1, most + 1):
            after = torch.tanh(z @ weight + x)
            change = (after - z).abs()
            z = after
            if (not good or number % 8 == 0) and change.max() < tolerance:
                break
        return z

    return solve


@recorded(stacks=True, active=5)
@pair
def finite_checks_each_layer(s, good):
    """Once the loss was NaN, and since then each layer's output is looked at."""
    width = s.pick(1024, 64)
    model = tower(width, width, 16, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(2048, 32), width, device=s.device, dtype=half(s.device))

    def look(module, inputs, output):
        if not torch.isfinite(output).all():
            raise RuntimeError(f"not finite after {module}")

    for module in model:
        if not good:
            module.register_forward_hook(look)

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


class Experts(nn.Module):
    """Each token passes through the expert that its router chooses."""

    def __init__(self, width, count, batched):
        super().__init__()
        self.router = nn.Linear(width, count)
        self.first = nn.Parameter(torch.randn(count, width, 2 * width) / width ** 0.5)
        self.second = nn.Parameter(torch.randn(count, 2 * width, width) / width ** 0.5)
        self.count, self.batched = count, batched

    def forward(self, x):
        chosen = self.router(x).argmax(dim=1)
        return x + (self.at_once(x, chosen) if self.batched else self.one_by_one(x, chosen))

    def one_by_one(self, x, chosen):
        result = torch.zeros_like(x)
        for number in range(self.count):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                result.index_add_(0, rows, F.gelu(x[rows] @ self.first[number]) @ self.second[number])
        return result

    def at_once(self, x, chosen):
        room = 2 * len(x) // self.count
        chosen, order = chosen.sort()
        counts = torch.zeros(self.count, dtype=torch.long, device=x.device).scatter_add_(0, chosen, torch.ones_like(chosen))
        place = torch.arange(len(x), device=x.device) - (counts.cumsum(0) - counts)[chosen]
        slot = chosen * room + place.clamp(max=room - 1)
        seats = x.new_zeros(self.count * room, x.shape[1]).index_copy_(0, slot, x[order])
        done = torch.bmm(F.gelu(torch.bmm(seats.view(self.count, room, -1), self.first)), self.second).flatten(0, 1)
        return torch.zeros_like(x).index_copy_(0, order, done[slot])


@recorded(active=4)
@pair
def experts_by_mask(s, good):
    """A mixture of 32 experts, evaluated."""
    width = s.pick(512, 32)
    model = nn.Sequential(*[Experts(width, s.pick(32, 4), good) for _ in range(3)]).to(s.device, half(s.device))
    x = torch.randn(s.pick(8192, 64), width, device=s.device, dtype=half(s.device))

    @torch.no_grad()
    def step():
        return model(x)

    return step
