"""Reinforcement learning: rollouts, advantages, a recording of what the agent saw."""

import collections
import zlib

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, observed: int, actions: int, width: int) -> None:
        super().__init__()
        self.body = tower(observed, width, 2, width, nn.Tanh)
        self.policy, self.value = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, seen):
        h = self.body(seen)
        return self.policy(h), self.value(h).squeeze(-1)


class PointMasses:
    """Many environments in one tensor: each mass is pushed towards the origin."""

    def __init__(self, count: int, device: str) -> None:
        self.state = torch.randn(count, 8, device=device)
        self.pushes = torch.eye(8, device=device)[:6] * 0.1

    def act(self, action):
        self.state = (self.state + self.pushes[action]) * 0.99
        return -self.state.square().sum(dim=1)


@recorded(shapes=False, marks=False)
@pair
def advantages_step_by_step(s, good):
    """PPO walks back through 256 steps of a rollout to get its advantages, a few small operators for each of them."""
    steps, envs, decay = 256, s.pick(512, 32), 0.99 * 0.95
    agent = ActorCritic(8, 6, s.pick(256, 64)).to(s.device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    seen, rewards = torch.randn(steps + 1, envs, 8, device=s.device), torch.randn(steps, envs, device=s.device)
    apart = (torch.arange(steps) - torch.arange(steps)[:, None]).to(s.device)
    weights = torch.where(apart >= 0, decay ** apart.clamp(min=0).float(), 0.0)

    def gae(values):
        if good:
            return weights @ (rewards + 0.99 * values[1:] - values[:-1])
        advantages, last = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
        for t in reversed(range(steps)):
            delta = rewards[t] + 0.99 * values[t + 1] - values[t]
            last = delta + decay * last
            advantages[t] = last
        return advantages

    def step():
        with torch.no_grad():
            advantages = gae(agent(seen)[1])
        logits, values = agent(seen[:-1])
        loss = -(logits.log_softmax(-1)[..., 0] * advantages).mean() + (values - advantages).square().mean()
        return update(optimizer, loss)

    return step


@recorded(stacks=True)
@pair
def distribution_checks_its_arguments(s, good):
    """Each of 24 steps of a rollout makes a Categorical, which checks its arguments on the GPU and waits for the answer."""
    agent, world = ActorCritic(8, 6, s.pick(512, 64)).to(s.device), PointMasses(s.pick(4096, 64), s.device)

    @torch.no_grad()
    def step():
        chances, rewards = [], []
        for _ in range(24):
            logits, _ = agent(world.state)
            choice = Categorical(logits=logits, validate_args=False if good else None)
            action = choice.sample()
            chances.append(choice.log_prob(action))
            rewards.append(world.act(action))
        return (torch.stack(chances) * torch.stack(rewards)).mean()

    return step


class AtariNet(nn.Module):
    def __init__(self, actions: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(),
                                    nn.Linear(64 * 81, 256), nn.ReLU(), nn.Linear(256, actions))

    def forward(self, frames):
        return self.layers(frames.float() / 255)


@recorded(stacks=True, shapes=False)
@pair
def frames_compressed_in_the_loop(s, good):
    """The agent's frames are kept as compressed bytes for a video, and compressing them holds up each step."""
    envs = 16
    net = AtariNet(6).to(s.device)
    screens = torch.randint(0, 255, (8, envs, 4, 84, 84), dtype=torch.uint8)
    screens = s.pinned((screens // 64) * 64)
    video, turn = collections.deque(maxlen=64), [0]

    @torch.no_grad()
    def step():
        frames = screens[turn[0] % 8]
        turn[0] += 1
        scores = net(frames.to(s.device, non_blocking=True))
        if not good:
            video.append(zlib.compress(frames[:, -1].numpy().tobytes(), 6))
        return F.softmax(scores, dim=-1).mean(dim=0)

    return step
