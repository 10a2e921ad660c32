"""What happens to the samples between their file and the model."""

import dataclasses
import random

import numpy
import torch
import torch.nn.functional as F
from common import half, pair, recorded, trained, update


@pair
def rows_read_in_a_loop(s, good):
    """Each row of a CPU tensor is looked at in Python, and lists of its sums and largest values become a tensor again."""
    rows, width = s.pick(96, 4), s.pick(64, 8)
    table = torch.rand(rows, width)
    model, optimizer = trained(s, 2, 6)

    def features():
        if good:
            return torch.stack((table.sum(dim=1), table.amax(dim=1)), dim=1)
        sums, largest = [], []
        for row in table:
            sums.append(float(row.sum()))
            largest.append(float(row.max()))
        return torch.tensor([sums, largest]).t()

    def step():
        x = features().to(s.device, half(s.device))
        return update(optimizer, model(x).float().square().mean())

    return step


@pair
def pictures_changed_one_by_one(s, good):
    """64 pictures are flipped, scaled and normalised on the training thread, one after the other, and stacked."""
    count, side = s.pick(64, 4), s.pick(48, 8)
    stored = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8)
    mean, spread = torch.tensor([0.5, 0.45, 0.4]).view(3, 1, 1), torch.tensor([0.2, 0.2, 0.2]).view(3, 1, 1)
    model, optimizer = trained(s, 3 * side * side, 6)
    on_device = [each.to(s.device) for each in (mean, spread)]
    kept = s.pinned(stored)

    def changed(picture):
        x = picture.float() / 255
        if random.random() < 0.5:
            x = x.flip(-1)
        return (x - mean) / spread

    def step():
        if good:
            x = kept.to(s.device, non_blocking=True).float() / 255
            x = torch.where(torch.rand(count, 1, 1, 1, device=s.device) < 0.5, x.flip(-1), x)
            x = (x - on_device[0]) / on_device[1]
        else:
            x = torch.stack([changed(picture) for picture in stored]).to(s.device)
        return update(optimizer, model(x.flatten(1).to(half(s.device))).float().square().mean())

    return step


@pair
def tensors_moved_one_by_one(s, good):
    """A batch is a dict of 160 small tensors, and each is copied to the GPU by itself."""
    names, width = [f"field{number}" for number in range(s.pick(160, 6))], s.pick(64, 4)
    batch = {name: torch.rand(width) for name in names}
    model, optimizer = trained(s, width * len(names), 4)

    def moved():
        if not good:
            return {name: value.to(s.device) for name, value in batch.items()}
        packed = torch.cat(list(batch.values())).to(s.device)
        return dict(zip(names, packed.split(width)))

    def step():
        x = torch.cat(list(moved().values())).to(half(s.device))
        return update(optimizer, model(x[None]).float().square().mean())

    return step


@dataclasses.dataclass
class Sample:
    ids: list
    weight: float
    label: int
    features: torch.Tensor


@recorded(stacks=True)
@pair
def samples_collated_field_by_field(s, good):
    """256 samples are dataclasses; a batch is made of each field of each of them."""
    count, length, width = s.pick(256, 4), s.pick(48, 4), s.pick(64, 4)
    samples = [Sample([(7 * number + place) % 100 for place in range(length)], 1 / (number + 1), number % 10, torch.rand(width))
               for number in range(count)]
    whole = [s.pinned(each) for each in (torch.tensor([sample.ids for sample in samples]),
                                         torch.tensor([sample.weight for sample in samples]),
                                         torch.tensor([sample.label for sample in samples]),
                                         torch.stack([sample.features for sample in samples]))]
    model, optimizer = trained(s, length + width, 4, 10)

    def collated():
        longest = max(len(sample.ids) for sample in samples)
        ids = [sample.ids + [0] * (longest - len(sample.ids)) for sample in samples]
        return (torch.tensor(ids), torch.tensor([sample.weight for sample in samples]), torch.tensor([sample.label for sample in samples]),
                torch.stack([sample.features.clone() for sample in samples]))

    def step():
        ids, weights, labels, features = [each.to(s.device, non_blocking=True) for each in (whole if good else collated())]
        x = torch.cat((ids.to(features.dtype), features), dim=1).to(half(s.device))
        losses = F.cross_entropy(model(x).float(), labels, reduction="none")
        return update(optimizer, (losses * weights).sum())

    return step


@pair
def nested_lists_made_tensors(s, good):
    """A table is kept as lists of lists, and becomes a tensor in each step."""
    rows, width = s.pick(192, 4), s.pick(128, 8)
    table = numpy.random.default_rng(0).standard_normal((rows, width), dtype=numpy.float32)
    lists = table.tolist()
    model, optimizer = trained(s, width, 6)

    def step():
        x = (torch.from_numpy(table) if good else torch.tensor(lists)).to(s.device)
        return update(optimizer, model(x.to(half(s.device))).float().square().mean())

    return step
