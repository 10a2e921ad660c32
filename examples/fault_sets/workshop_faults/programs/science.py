"""Equations and fields, a ranking, an agent's memory."""

import numpy as np
import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


class Solve(torch.autograd.Function):
    """Solves a batch of systems; both the matrices and the right sides learn."""

    @staticmethod
    def forward(ctx, matrix, right, keep):
        factors, pivots, _ = torch.linalg.lu_factor_ex(matrix)
        solution = torch.linalg.lu_solve(factors, pivots, right)
        ctx.keep = keep
        ctx.save_for_backward(*((factors, pivots) if keep else (matrix,)), solution)
        return solution

    @staticmethod
    def backward(ctx, gradient):
        if ctx.keep:
            factors, pivots, solution = ctx.saved_tensors
            of_right = torch.linalg.lu_solve(factors, pivots, gradient, adjoint=True)
        else:
            matrix, solution = ctx.saved_tensors
            of_right, _ = torch.linalg.solve_ex(matrix.mT, gradient)
        return -of_right @ solution.mT, of_right, None


@recorded(stacks=True)
@pair
def factors_made_again_in_backward(s, good):
    """The matrices of 512 small systems learn through their solutions."""
    systems, size, sides = s.pick(512, 4), s.pick(128, 8), s.pick(8, 2)
    matrices = nn.Parameter(torch.randn(systems, size, size, device=s.device) * 0.3 / size ** 0.5 + torch.eye(size, device=s.device))
    right = torch.randn(systems, size, sides, device=s.device)
    optimizer = torch.optim.SGD([matrices], lr=1e-6)

    def step():
        return update(optimizer, Solve.apply(matrices, right, good).square().mean())

    return step


@recorded(stacks=True)
@pair
def filters_leave_the_spectrum(s, good):
    """Six filters, one after the other, change 64 fields. Each is a product with numbers in the spectrum."""
    fields, side = s.pick(64, 2), s.pick(512, 16)
    field = torch.randn(fields, side, side, device=s.device)
    filters = [torch.rand(side, 1, device=s.device) * torch.rand(1, side // 2 + 1, device=s.device) + 0.5 for _ in range(6)]
    filters = [(part + part.flip(0).roll(1, 0)) / 2 for part in filters]  # so that what comes back is real

    @torch.inference_mode()
    def step():
        now = field
        with record_function("filters"):
            if good:
                spectrum = torch.fft.rfft2(now)
                for part in filters:
                    spectrum = spectrum * part
                now = torch.fft.irfft2(spectrum, s=field.shape[-2:])
            else:
                for part in filters:
                    now = torch.fft.irfft2(torch.fft.rfft2(now) * part, s=field.shape[-2:])
        return now.mean(dim=(1, 2))

    return step


@recorded(stacks=True)
@pair
def all_items_scored_for_few(s, good):
    """2048 users; for each, 64 of 500,000 items were found before and are now ranked."""
    users, items, width, few = s.pick(2048, 8), s.pick(500_000, 100), s.pick(128, 8), s.pick(64, 4)
    model = tower(width, s.pick(1024, 16), 3, width).to(s.device, half(s.device)).eval()
    of_users = torch.randn(users, width, device=s.device, dtype=half(s.device))
    of_items = torch.randn(items, width, device=s.device, dtype=half(s.device))
    found = torch.randint(0, items, (users, few), device=s.device)

    @torch.inference_mode()
    def step():
        tastes = model(of_users)
        with record_function("rank"):
            if good:
                scores = torch.bmm(F.embedding(found, of_items), tastes[:, :, None])[:, :, 0]
            else:
                scores = (tastes @ of_items.T).gather(1, found)
            best = scores.float().topk(s.pick(10, 2), dim=1)
        return best.values.mean(dim=1)

    return step


class SumTree:
    """Priorities of a replay memory: the leaves of a tree, each of whose inner nodes is the sum of its two."""

    def __init__(self, leaves):
        self.leaves = leaves
        self.sums = [0.0] * leaves + [1.0] * leaves
        for node in range(leaves - 1, 0, -1):
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def find(self, mass):
        node = 1
        while node < self.leaves:
            node *= 2
            if mass >= self.sums[node]:
                mass -= self.sums[node]
                node += 1
        return node - self.leaves

    def sample(self, shares):
        return [self.find(share * self.sums[1]) for share in shares.tolist()]

    def update(self, places, priorities):
        for place, priority in zip(places, priorities.tolist()):
            node = place + self.leaves
            change = priority - self.sums[node]
            while node:
                self.sums[node] += change
                node //= 2


class ArrayTree(SumTree):
    """The same, level by level for all places of a batch."""

    def __init__(self, leaves):
        super().__init__(leaves)
        self.sums = np.array(self.sums)

    def sample(self, shares):
        mass, node = shares * self.sums[1], np.ones(len(shares), dtype=np.int64)
        while node[0] < self.leaves:
            node *= 2
            left = self.sums[node]
            right = mass >= left
            mass = np.where(right, mass - left, mass)
            node += right
        return node - self.leaves

    def update(self, places, priorities):
        node = np.asarray(places) + self.leaves
        self.sums[node] = priorities
        while node[0] > 1:
            node = np.unique(node // 2)
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]


@recorded(stacks=True, active=3)
@pair
def sum_tree_walked_in_python(s, good):
    """An agent learns from 512 memories, chosen by how wrong it was about them."""
    count, width, batch = s.pick(65_536, 64), s.pick(64, 8), s.pick(512, 4)
    tree = (ArrayTree if good else SumTree)(count)
    network = tower(width, s.pick(512, 16), 2, 8).to(s.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-5)
    states, values = torch.randn(count, width, device=s.device), torch.randn(count, device=s.device)
    shares = (np.arange(batch) + 0.5) / batch

    def step():
        with record_function("sample"):
            places = tree.sample(shares)
        at = torch.as_tensor(places).to(s.device)
        wrong = network(states[at]).amax(dim=1) - values[at]
        loss = update(optimizer, wrong.square().mean())
        with record_function("priorities"):
            tree.update(places, wrong.detach().abs().add(0.01).cpu().double().numpy())
        return loss

    return step
