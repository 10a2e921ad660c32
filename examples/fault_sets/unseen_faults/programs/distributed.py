"""What data-parallel training does besides its gradients. The only rank is this process."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import join_alone, pair, recorded, tower, update
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@recorded(shapes=False)
@pair
def ddp_broadcasts_buffers(s, good):
    """DDP sends the running means of 24 batch norms to all ranks before each forward pass; each rank could keep its own."""
    join_alone(s.device)
    width = s.pick(64, 16)
    blocks = [part for _ in range(24) for part in (nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())]
    model = nn.Sequential(*blocks, nn.Flatten(1), nn.Linear(width * 64, 10)).to(s.device)
    model = DistributedDataParallel(model, broadcast_buffers=not good)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, wanted = torch.randn(s.pick(64, 4), width, 8, 8, device=s.device), torch.randint(0, 10, (s.pick(64, 4),), device=s.device)

    def step():
        return update(optimizer, F.cross_entropy(model(x), wanted))

    return step


@recorded(stacks=True)
@pair
def metrics_gathered_as_objects(s, good):
    """Each step a dictionary of numbers is pickled and gathered from all ranks; a sum on the GPU would do."""
    join_alone(s.device)
    width = s.pick(1024, 64)
    model = tower(width, width, 6, 10).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, wanted = torch.randn(s.pick(2048, 64), width, device=s.device), torch.randint(0, 10, (s.pick(2048, 64),), device=s.device)
    sums = torch.zeros(2, device=s.device)

    def step():
        logits = model(x)
        loss = update(optimizer, F.cross_entropy(logits, wanted))
        right = (logits.argmax(dim=1) == wanted).float().mean()
        if good:
            sums.add_(torch.stack([loss, right]))
        else:
            everyone = [None]
            dist.all_gather_object(everyone, {"loss": loss.item(), "accuracy": right.item(), "rows": len(x)})
        return loss

    return step
