"""Numbers about the output that need many times the memory of everything else, for a moment.

Wrong: the entropy of 8192 distributions over 65,536 words at once: logits, log-probabilities and probabilities, in float32.
In the trace (recorded with profile_memory): the allocated memory jumps by gigabytes and falls back in each step.
Fix: 128 rows at a time.
"""

import torch


def program(s, rows_at_once):
    width, rows = s.pick(2048, 16), s.pick(8192, 128)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(s.pick(32, 2))]).to(s.device, torch.bfloat16)
    words, x = s.randn(width, s.pick(65536, 32)), s.randn(rows, width)

    @torch.inference_mode()
    def step():
        total = torch.zeros((), device=s.device)
        for part in model(x).split(rows_at_once):
            log_p = (part @ words).log_softmax(-1, dtype=torch.float32)
            total -= (log_p.exp() * log_p).sum()
        total.item()  # the progress bar shows it
        return total

    return step


def bad(s):
    return program(s, s.pick(8192, 128))


def good(s):
    return program(s, s.pick(128, 32))
