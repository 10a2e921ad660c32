"""Equations, filters, ensembles, orbits."""

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


def laplacian(net, points):
    """The sum of the second derivatives at each point, for training."""
    points = points.detach().requires_grad_()
    value = net(points)
    slope, = torch.autograd.grad(value.sum(), points, create_graph=True)
    total = 0
    for axis in range(points.shape[1]):
        second, = torch.autograd.grad(slope[:, axis].sum(), points, create_graph=True)
        total = total + second[:, axis]
    return total


@recorded(stacks=True, active=4)
@pair
def residual_at_boundary_points(s, good):
    """A network learns a solution of Poisson's equation. A quarter of its points are inside, the others on the boundary."""
    count, width = s.pick(65_536, 64), s.pick(256, 16)
    net = tower(2, width, 4, 1, nn.Tanh).to(s.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    points = torch.rand(count, 2, device=s.device)
    inside = (torch.arange(count, device=s.device) % 4 == 0).float()
    rows_inside = inside.nonzero().squeeze(1)
    few = points[rows_inside]

    def step():
        with record_function("residual"):
            if good:
                wrong = (laplacian(net, few) - 1).square().sum()
            else:
                residual = laplacian(net, points) * inside
                wrong = (residual - inside).square().sum()
        at_boundary = (net(points).squeeze(1) * (1 - inside)).square().sum()
        return update(optimizer, (wrong + at_boundary) / count)

    return step


class KalmanFilter(nn.Module):
    """Follows many targets at once."""

    def __init__(self, size, good):
        super().__init__()
        self.good = good
        self.register_buffer("move", torch.eye(size) + 0.01 * torch.randn(size, size))
        self.register_buffer("noise", 0.1 * torch.eye(size))

    def factor_of(self, spread):
        if self.good:
            return torch.linalg.cholesky_ex(spread, check_errors=False).L
        factor = torch.linalg.cholesky(spread)
        return factor

    def forward(self, series, spread):
        state = torch.zeros_like(series[0])
        for seen in series:
            state, spread = state @ self.move.T, self.move @ spread @ self.move.T + self.noise
            factor = self.factor_of(spread + self.noise)
            halfway = torch.linalg.solve_triangular(factor, spread, upper=False)
            gain = torch.linalg.solve_triangular(factor.mT, halfway, upper=True).mT
            state = state + (gain @ (seen - state).unsqueeze(-1)).squeeze(-1)
            spread = spread - gain @ spread
        return state


@recorded(stacks=True, active=4)
@pair
def cholesky_checked_each_time(s, good):
    """A Kalman filter over 24 measurements of 4096 targets."""
    size, targets, length = s.pick(16, 4), s.pick(4096, 4), s.pick(24, 6)
    model = KalmanFilter(size, good).to(s.device)
    series = torch.randn(length, targets, size, device=s.device)
    spread = torch.eye(size, device=s.device).repeat(targets, 1, 1)

    @torch.inference_mode()
    def step():
        return model(series, spread).mean(dim=0)

    return step


@recorded(stacks=True, active=3)
@pair
def ensemble_member_by_member(s, good):
    """An ensemble of 16 small networks learns the dynamics of a robot, for planning."""
    count, rows, width = s.pick(16, 4), s.pick(256, 8), s.pick(200, 16)
    members = nn.ModuleList([tower(s.pick(24, 4), width, 3, s.pick(18, 4), nn.SiLU) for _ in range(count)]).to(s.device)
    x, y = torch.randn(rows, s.pick(24, 4), device=s.device), torch.randn(rows, s.pick(18, 4), device=s.device)
    base = members[0]
    stacked, _ = torch.func.stack_module_state(list(members))
    weights = list(stacked.values()) if good else list(members.parameters())
    optimizer = torch.optim.Adam(weights, lr=1e-4, foreach=True)

    def loss_of(own):
        return F.mse_loss(torch.func.functional_call(base, own, (x,)), y)

    def step():
        if good:
            losses = torch.func.vmap(loss_of)(stacked)
        else:
            losses = [F.mse_loss(member(x), y) for member in members]
            losses = torch.stack(losses)
        update(optimizer, losses.sum())
        return losses.detach()

    return step


class Quantity(torch.Tensor):
    """A tensor that knows its unit."""

    unit = ""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        units = [value.unit for value in args if isinstance(value, Quantity)]
        result = super().__torch_function__(function, types, args, kwargs or {})
        if isinstance(result, Quantity):
            result.unit = units[0] if units else ""
        return result


@recorded(stacks=True, active=4)
@pair
def metadata_in_tensor_subclass(s, good):
    """Ten time steps of springs between masses, 65,536 of them. Their places, speeds and forces carry units."""
    count = s.pick(65_536, 64)
    place, speed = torch.randn(2, count, device=s.device)
    if not good:
        place, speed = place.as_subclass(Quantity), speed.as_subclass(Quantity)
        place.unit, speed.unit = "m", "m/s"

    def force(place):
        apart = place - place.roll(1)
        pull = apart * 4.0 + apart.pow(3) * 0.1
        return pull.roll(-1) - pull

    @torch.inference_mode()
    def step():
        here, now = place, speed
        for _ in range(10):
            now = now + force(here) * 0.01
            here = here + now * 0.01
        energy = 0.5 * now.square().mean()
        return energy.as_subclass(torch.Tensor), here.as_subclass(torch.Tensor)

    return step


class Leapfrog:
    """Moves particles; never changes what its caller gave it."""

    def __init__(self, s, good):
        self.good, self.pull = good, torch.linspace(0.5, 1.5, 3, device=s.device)

    def force(self, place):
        return -(place if self.good else place.clone()) * self.pull

    def substep(self, place, momentum, dt):
        if not self.good:
            place, momentum = place.clone(), momentum.clone()
        momentum.add_(self.force(place), alpha=dt)
        place.add_(momentum, alpha=dt)
        return place, momentum


@recorded(stacks=True)
@pair
def fields_cloned_each_substep(s, good):
    """Eight million particles in a trap, six substeps."""
    count = s.pick(8_388_608, 64)
    start = torch.randn(2, count, 3, device=s.device)
    method = Leapfrog(s, good)

    @torch.inference_mode()
    def step():
        place, momentum = start.clone()
        with record_function("leapfrog"):
            for _ in range(6):
                place, momentum = method.substep(place, momentum, 0.01)
        return place.mean(dim=0), momentum.mean(dim=0)

    return step
