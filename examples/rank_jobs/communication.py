"""Jobs whose ranks are even, and whose communication differs."""
from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from training import BATCH, DEVICE, LAYERS, ON_GPU, RANK, WIDTH, WORLD, Job, in_parallel, make_model


class TinyBuckets(Job):
    """61 small layers, with a bucket for each: launch-bound, 61 collectives of about 1 MiB a step."""

    def wrap(self, model):
        return in_parallel(make_model(WIDTH // 8, layers=60), bucket_mb=0.01)

    def batch(self):
        return self.inputs[:, : WIDTH // 8], self.labels


class OneAllReduce(Job):
    """All gradients in one all-reduce after the backward pass, by hand: nothing hides it."""

    def wrap(self, model):
        return model

    def before_update(self, number, loss):
        flat = torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])
        dist.all_reduce(flat)
        flat /= WORLD
        at = 0
        for parameter in self.model.parameters():
            parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
            at += parameter.numel()


class ReducesEachMicroStep(Job):
    """Four micro steps without no_sync(): each reduces its gradients."""

    def step(self, number):
        self.optimizer.zero_grad()
        for micro in range(4):
            loss = nn.functional.cross_entropy(self.model(self.inputs[micro::4]), self.labels[micro::4])
            loss.backward()
        self.optimizer.step()


class FullySharded(Job):
    """Healthy, with fully_shard instead of DistributedDataParallel."""

    def wrap(self, model):
        from torch.distributed.fsdp import fully_shard

        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        return fully_shard(model)


class _SumOfRanks(torch.autograd.Function):
    """A layer that is split over the ranks sums its output, and on the way back the gradient of its input."""

    @staticmethod
    def forward(context, partial, group):
        context.group = group
        whole = partial.clone()
        dist.all_reduce(whole, group=group)
        return whole

    @staticmethod
    def backward(context, gradient):
        whole = gradient.clone()
        dist.all_reduce(whole, group=context.group)
        return whole, None


class _TwoPurposes(Job):
    """Each layer sums its activations over one group, where nothing can hide it. Gradients are summed over another
    one after the backward pass. On two GPUs both groups have the same ranks."""

    tf32 = True

    def __init__(self):
        ranks = list(range(WORLD))
        self.tensor_group = dist.new_group(ranks, group_desc="tensor_parallel")
        self.data_group = dist.new_group(ranks, group_desc="data_parallel")
        super().__init__()

    def wrap(self, model):
        return model

    def step(self, number):
        hidden = self.inputs
        for layer in self.model[:-1]:
            hidden = layer(hidden)
            if isinstance(layer, nn.Linear):
                hidden = _SumOfRanks.apply(hidden, self.tensor_group) / WORLD
        loss = nn.functional.cross_entropy(self.model[-1](hidden), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.gradients():
            dist.all_reduce(parameter.grad, group=self.data_group)
        self.optimizer.step()

    def gradients(self):
        return list(self.model.parameters())


class ExposedTensorParallel(_TwoPurposes):
    """Activations are summed in every layer, gradients only of the last layer."""

    def gradients(self):
        return list(self.model[-1].parameters())


class EvenPurposes(_TwoPurposes):
    """Activations and gradients cost about the same: a near miss."""


class Pipeline(Job):
    """The first half of the layers on rank 0, the rest on rank 1; all forward passes first, then all backward passes."""

    micro_batches = 4
    layers = LAYERS

    def wrap(self, model):
        self.first = RANK == 0
        return make_model(layers=self.layers)[:-1]

    def step(self, number):
        size = len(self.inputs) // self.micro_batches
        kept = []
        for micro in range(self.micro_batches):
            if self.first:
                output = self.model(self.inputs[micro * size : (micro + 1) * size])
                dist.send(output.detach(), dst=1)
                kept.append((None, output))
            else:
                received = torch.empty(size, WIDTH, device=DEVICE)
                dist.recv(received, src=0)
                received.requires_grad_(True)
                kept.append((received, self.model(received)))
        self.optimizer.zero_grad()
        for received, output in kept:
            if self.first:
                gradient = torch.empty_like(output)
                dist.recv(gradient, src=1)
                output.backward(gradient)
            else:
                output.square().mean().backward()
                dist.send(received.grad, dst=0)
        self.optimizer.step()


class PipelineOfManyBatches(Pipeline):
    """16 micro-batches: the stages wait for less than a tenth of a step."""

    micro_batches = 16

    def __init__(self):
        super().__init__()
        self.inputs = self.inputs.repeat(4 if ON_GPU else 1, 1)


class PipelineWithLongStage(Pipeline):
    """Rank 1 has twice the layers."""

    layers = LAYERS * (2 if RANK == 1 else 1)
