"""Pictures, depth, points in space."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


def stack_of_convolutions(inputs, width, count, outputs):
    parts = [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
    for _ in range(count - 1):
        parts += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts, nn.Conv2d(width, outputs, 1))


def placed(s, model):
    return model.to(s.device, half(s.device), memory_format=torch.channels_last)


def pictures(s, count, channels, side):
    x = torch.randn(count, channels, side, side, device=s.device, dtype=half(s.device))
    return x.contiguous(memory_format=torch.channels_last)


@recorded(stacks=True)
@pair
def images_augmented_one_by_one(s, good):
    """Pictures are flipped, shifted and made brighter or darker on the GPU before each training step."""
    count, side = s.pick(96, 4), s.pick(64, 16)
    width = s.pick(64, 8)
    model = placed(s, nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.rand(count, 3, side, side, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, 10, (count,), device=s.device)
    turns, light = torch.rand(count) < 0.5, 0.8 + 0.4 * torch.rand(count)
    moves = torch.randint(-8, 9, (count,))
    plan = list(zip(turns.tolist(), moves.tolist(), light.tolist()))
    columns = torch.arange(side)[None, :].sub(moves[:, None]).remainder(side)
    columns = torch.where(turns[:, None], side - 1 - columns, columns).to(s.device)
    light_there = light.to(s.device, half(s.device)).view(-1, 1, 1, 1)

    def one_by_one():
        changed = []
        for number in range(len(images)):
            image = images[number]
            turned, move, factor = plan[number]
            if turned:
                image = image.flip(-1)
            image = torch.roll(image, move, dims=-1)
            changed.append((image * factor).clamp(0, 1))
        return torch.stack(changed)

    def at_once():
        index = columns[:, None, None, :].expand(-1, 3, side, -1)
        return images.gather(3, index).mul_(light_there).clamp_(0, 1)

    def step():
        x = at_once() if good else one_by_one()
        return update(optimizer, F.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)).float(), labels))

    return step


@recorded(stacks=True)
@pair
def classes_counted_by_one_hot(s, good):
    """Evaluation of a segmentation: how far prediction and truth overlap, for each of 64 classes."""
    classes, width, side = s.pick(64, 8), s.pick(64, 8), s.pick(256, 24)
    model = placed(s, stack_of_convolutions(3, width, 4, classes)).eval()
    images, truth = pictures(s, s.pick(8, 2), 3, side), torch.randint(0, classes, (s.pick(8, 2), side, side), device=s.device)

    def by_one_hot(chosen):
        one, other = F.one_hot(chosen, classes), F.one_hot(truth, classes)
        both = (one * other).sum(dim=(0, 1, 2))
        return both, one.sum(dim=(0, 1, 2)) + other.sum(dim=(0, 1, 2)) - both

    def by_counting(chosen):
        table = torch.bincount((truth * classes + chosen).flatten(), minlength=classes * classes).view(classes, classes)
        both = table.diagonal()
        return both, table.sum(dim=0) + table.sum(dim=1) - both

    @torch.inference_mode()
    def step():
        both, either = (by_counting if good else by_one_hot)(model(images).argmax(dim=1))
        return both.float() / either.clamp(min=1)

    return step


@recorded(stacks=True)
@pair
def bins_by_comparison(s, good):
    """Depth, measured four times as finely as the network sees, is learnt as one of 200 bins, whose edges grow with the distance."""
    bins, width, side, count = s.pick(200, 12), s.pick(64, 8), s.pick(192, 24), s.pick(8, 2)
    model = placed(s, stack_of_convolutions(3, width, 3, bins))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images, depth = pictures(s, count, 3, side), 100 * torch.rand(count, 4 * side, 4 * side, device=s.device)
    edges = torch.logspace(0, 2, bins - 1, device=s.device)

    def step():
        if good:
            fine = torch.bucketize(depth, edges)
        else:
            fine = (depth.unsqueeze(-1) > edges).sum(-1)
        labels = fine.view(count, side, 4, side, 4).amax(dim=(2, 4))
        return update(optimizer, F.cross_entropy(model(images), labels))

    return step


class Around(nn.Module):
    """A layer for clouds of points: each takes the largest of what its neighbours say."""

    def __init__(self, width, near, good):
        super().__init__()
        self.near, self.good, self.work = near, good, tower(width, width, 1, width)

    def forward(self, x, places, nearest):
        if not self.good:
            nearest = torch.cdist(places, places).topk(self.near, largest=False).indices
        said = self.work(x)
        rows = torch.arange(len(x), device=x.device)[:, None, None]
        return x + said[rows, nearest].amax(dim=2)


@recorded(stacks=True)
@pair
def neighbours_searched_in_each_layer(s, good):
    """Clouds of points are classified by four layers. The points stay where they are."""
    clouds, points, width, near = s.pick(16, 2), s.pick(2048, 32), s.pick(64, 8), s.pick(16, 4)
    layers = nn.ModuleList([Around(width, near, good) for _ in range(4)]).to(s.device).eval()
    places = torch.rand(clouds, points, 3, device=s.device)
    first, last = nn.Linear(3, width).to(s.device), nn.Linear(width, 40).to(s.device)

    @torch.inference_mode()
    def step():
        nearest = torch.cdist(places, places).topk(near, largest=False).indices if good else None
        x = first(places)
        for layer in layers:
            x = layer(x, places, nearest)
        return last(x.amax(dim=1)).softmax(dim=1)

    return step
