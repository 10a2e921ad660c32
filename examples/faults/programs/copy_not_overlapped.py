"""The next batch is copied when it is needed, on the stream that computes.

Wrong: memory is pinned and the copy does not block the CPU, but on one stream the GPU does one thing after the other.
In the trace: `Memcpy HtoD (Pinned -> Device)` on the compute stream, while no kernel runs.
Fix: copy the next batch on a stream of its own while this one is computed.
"""

import torch


def parts(s):
    width = s.pick(4096, 16)
    batches = [s.pinned(torch.randn(s.pick(8192, 4), width).bfloat16()) for _ in range(2)]
    layers = [torch.nn.Linear(width, width) for _ in range(s.pick(6, 2))]
    return batches, torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)


def bad(s):
    batches, model = parts(s)
    steps = [0]

    @torch.inference_mode()
    def step():
        batch = batches[steps[0] % 2].to(s.device, non_blocking=True)
        steps[0] += 1
        return model(batch).float().mean()

    return step


def good(s):
    if s.device != "cuda":
        return bad(s)
    batches, model = parts(s)
    steps = [0]
    side, places = torch.cuda.Stream(), [torch.empty_like(batch, device=s.device) for batch in batches]

    def fetch(number):
        side.wait_stream(torch.cuda.current_stream())  # the place was read in the step before
        with torch.cuda.stream(side):
            places[number % 2].copy_(batches[number % 2], non_blocking=True)

    fetch(0)

    @torch.inference_mode()
    def step():
        torch.cuda.current_stream().wait_stream(side)
        number, steps[0] = steps[0], steps[0] + 1
        fetch(number + 1)  # before this step's kernels are launched, so that it does not wait for them
        return model(places[number % 2]).float().mean()

    return step
