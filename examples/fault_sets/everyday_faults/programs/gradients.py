"""Work of autograd that nobody asked for."""

import torch
import torch.nn.functional as F
from common import mlp, pair, sgd, train
from torch import nn


@pair
def evaluation_with_grad(s, good):
    """Validation runs with gradients on, so each operator keeps what a backward pass would need, and none comes."""
    width = s.pick(2048, 64)
    model, x = mlp(s, width, 4), torch.randn(s.pick(2048, 64), width, device=s.device)
    held, y = torch.randn(4, s.pick(2048, 64), width, device=s.device), torch.randn_like(x)
    optimizer = sgd(model.parameters())

    def step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.set_grad_enabled(not good):
            errors = [F.mse_loss(model(part), y) for part in held]
        return torch.stack([error.detach() for error in errors]).mean()

    return step


@pair
def frozen_layers_in_optimizer(s, good):
    """Only the last layer is in the optimizer, and all layers get gradients."""
    width = s.pick(2048, 64)
    model, x = mlp(s, width, 8), torch.randn(s.pick(2048, 64), width, device=s.device)
    y = torch.randn_like(x)
    if good:
        for parameter in list(model.parameters())[:-2]:
            parameter.requires_grad_(False)
    head = sgd(model[-1].parameters())

    def step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        head.step()
        model.zero_grad()
        return loss.detach()

    return step


@pair
def auxiliary_output(s, good):
    """A decoder makes a reconstruction in each step; its loss has been removed, the call has not."""
    width = s.pick(1024, 64)
    model, decoder = mlp(s, width, 2), mlp(s, width, 6)
    x = torch.randn(s.pick(4096, 64), width, device=s.device)
    optimizer = sgd(model.parameters())

    def loss_of():
        code = model(x)
        if not good:
            loss_of.picture = torch.sigmoid(decoder(code))
        return code.square().mean()

    return train(optimizer, loss_of)


@pair
def teacher_and_student_twice(s, good):
    """The distilled model runs the same forward twice: once for the task's loss, once for the distillation's."""
    width = s.pick(1024, 64)
    model, x = mlp(s, width, 6), torch.randn(s.pick(4096, 64), width, device=s.device)
    target, y = torch.randn_like(x), torch.randn_like(x)

    def loss_of():
        first = model(x)
        second = first if good else model(x)
        return F.mse_loss(first, y) + F.l1_loss(second, target)

    return train(sgd(model.parameters()), loss_of)


@pair
def dropout_at_inference(s, good):
    """The served model was left in train mode: dropout and batch norm still do their training work."""
    channels, side = s.pick(64, 8), s.pick(112, 16)
    parts = []
    for _ in range(4):
        parts += [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.Dropout(0.1)]
    model = nn.Sequential(*parts).to(s.device).train(not good)
    x = torch.randn(s.pick(32, 2), channels, side, side, device=s.device)

    @torch.inference_mode()
    def step():
        return model(x).mean()

    return step


@pair
def norm_of_each_gradient(s, good):
    """Gradients are clipped parameter by parameter, with a Python condition on each norm."""
    width = s.pick(512, 32)
    model, x = mlp(s, width, 24), torch.randn(64, width, device=s.device)
    y, optimizer = torch.randn_like(x), sgd(model.parameters())

    def step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if good:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            for parameter in model.parameters():
                norm = parameter.grad.norm()
                if norm > 1.0:
                    parameter.grad.mul_(1.0 / norm)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def second_backward_for_penalty(s, good):
    """A gradient penalty is taken in each step, though the paper takes it in every 16th."""
    width = s.pick(1024, 64)
    model, x = mlp(s, width, 4, 1), torch.randn(s.pick(2048, 64), width, device=s.device).requires_grad_()

    def loss_of():
        scores = model(x)
        loss = scores.mean()
        if not good:
            (slope,) = torch.autograd.grad(scores.sum(), x, create_graph=True)
            loss = loss + 10 * (slope.norm(dim=1) - 1).square().mean()
        return loss

    return train(sgd(model.parameters()), loss_of)
