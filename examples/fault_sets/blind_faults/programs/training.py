"""Faults in the training step around the model."""

import torch
import torch.nn.functional as F
from common import adamw, mlp, pair, train
from torch import nn
from torch.profiler import record_function


def batch_of(s, rows, width, classes):
    return s.randn(rows, width), torch.randint(0, classes, (rows,), device=s.device)


@pair
def unused_head(s, good):
    """A second head for another task is still computed, and nothing uses its output."""
    width, classes = s.pick(1024, 16), s.pick(32000, 32)
    model, (x, y) = mlp(s, width, 3, 1000), batch_of(s, s.pick(4096, 8), width, s.pick(1000, 4))
    other = nn.Linear(1000, classes).to(s.device, torch.bfloat16)

    def loss_of():
        logits = model(x)
        if not good:
            loss_of.words = F.log_softmax(other(logits), dim=-1).detach()
        return F.cross_entropy(logits.float(), y)

    return train(model, adamw(model.parameters()), loss_of)


@pair
def forward_twice(s, good):
    """The accuracy of the batch runs the model a second time."""
    width = s.pick(2048, 16)
    model, (x, y) = mlp(s, width, 6, 1000), batch_of(s, s.pick(4096, 8), width, s.pick(1000, 4))
    optimizer = adamw(model.parameters())

    def step():
        logits = model(x)
        loss = F.cross_entropy(logits.float(), y)
        loss.backward()
        with torch.no_grad():
            right = ((logits if good else model(x)).argmax(dim=-1) == y).float().mean()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), right

    return step


@pair
def frozen_backbone_with_grad(s, good):
    """Only the head is trained, but gradients of the whole backbone are computed."""
    width = s.pick(2048, 16)
    backbone, (x, y) = mlp(s, width, 6), batch_of(s, s.pick(4096, 8), width, s.pick(1000, 4))
    head = nn.Linear(width, 1000).to(s.device, torch.bfloat16)
    optimizer = adamw(head.parameters())

    def step():
        with record_function("forward"):
            if good:
                with torch.no_grad():
                    features = backbone(x)
            else:
                features = backbone(x)
            loss = F.cross_entropy(head(features).float(), y)
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        backbone.zero_grad()
        return loss.detach()

    return step


@pair
def weight_norm_each_micro_step(s, good):
    """Normalised weights are computed again for each of 8 micro batches of one step."""
    width, micro = s.pick(4096, 16), 8
    layers = [nn.utils.parametrizations.weight_norm(nn.Linear(width, width)) for _ in range(2)]
    model = nn.Sequential(layers[0], nn.GELU(), layers[1]).to(s.device, torch.bfloat16)
    parts = [s.randn(s.pick(128, 4), width) for _ in range(micro)]

    @torch.inference_mode()
    def step():
        if good:
            with nn.utils.parametrize.cached():
                return sum(model(part).float().square().mean() for part in parts)
        return sum(model(part).float().square().mean() for part in parts)

    return step


@pair
def tiny_micro_batches(s, good):
    """16 micro batches of 8 rows make one step, though the whole batch fits."""
    width, micro = s.pick(512, 16), s.pick(16, 4)
    model, (x, y) = mlp(s, width, 3, 100), batch_of(s, 8 * micro, width, s.pick(100, 4))
    optimizer = adamw(model.parameters())

    def step():
        total = torch.zeros((), device=s.device)
        for rows, wanted in [(x, y)] if good else zip(x.chunk(micro), y.chunk(micro)):
            loss = F.cross_entropy(model(rows).float(), wanted) * (len(rows) / len(x))
            loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        return total

    return step


@pair
def grad_norm_log(s, good):
    """The norm of each parameter's gradient is taken to the CPU for the log, one by one."""
    width = s.pick(512, 16)
    model, (x, y) = mlp(s, width, 12, 100), batch_of(s, s.pick(2048, 8), width, s.pick(100, 4))
    optimizer, log = adamw(model.parameters()), {}

    def step():
        loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        if good:
            log["norms"] = torch.stack(torch._foreach_norm([p.grad for p in model.parameters()]))
        else:
            for name, parameter in model.named_parameters():
                log[name] = parameter.grad.norm().item()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def anomaly_detection(s, good):
    """torch.autograd.set_detect_anomaly was left on after a search for a NaN."""
    width = s.pick(512, 16)
    model, (x, y) = mlp(s, width, 8, 100), batch_of(s, s.pick(512, 8), width, s.pick(100, 4))
    torch.autograd.set_detect_anomaly(not good)
    return train(model, adamw(model.parameters()), lambda: F.cross_entropy(model(x).float(), y))


@pair
def python_sum_of_losses(s, good):
    """The loss of each sample is taken from the tensor and added by Python's sum()."""
    width, rows = s.pick(512, 16), s.pick(160, 8)
    model, (x, y) = mlp(s, width, 3, 100), batch_of(s, rows, width, s.pick(100, 4))

    def loss_of():
        losses = F.cross_entropy(model(x).float(), y, reduction="none")
        return losses.mean() if good else sum(loss for loss in losses) / rows

    return train(model, adamw(model.parameters()), loss_of)


@pair
def loss_weights_as_tensors(s, good):
    """Each of 40 terms of the loss gets its weight as a new tensor on the GPU."""
    width, terms = s.pick(1024, 16), s.pick(40, 4)
    model, x = mlp(s, width, 3, terms), s.randn(s.pick(4096, 8), width)
    weights = [1.0 / (1 + term) for term in range(terms)]
    kept = torch.tensor(weights, device=s.device)

    def loss_of():
        squares = model(x).float().square().mean(dim=0)
        if good:
            return (squares * kept).sum()
        return sum(squares[term] * torch.tensor(weight, device=s.device) for term, weight in enumerate(weights))

    return train(model, adamw(model.parameters()), loss_of)
