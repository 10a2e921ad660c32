"""The loss over a large vocabulary, operator by operator.

Wrong: logits of 8192 words over 50,304 are cast to float32, and log_softmax, nll_loss and both of their backward passes
each read or write all of them.
In the trace: aten::_log_softmax, aten::nll_loss_forward and their backward take as long as the matrix products around them.
Fix: torch.compile the loss together with the last layer: fewer passes, and none in float32.
"""

import torch


def loss_of(hidden, weight, words):
    return torch.nn.functional.cross_entropy((hidden @ weight).float(), words)


def program(s, function):
    rows, width, vocabulary = s.pick(8192, 8), s.pick(1024, 16), s.pick(50304, 64)
    hidden, weight = s.randn(rows, width).requires_grad_(), (s.randn(width, vocabulary) * 0.02).requires_grad_()
    words = torch.arange(rows, device=s.device) * 6 % vocabulary

    def step():
        loss = function(hidden, weight, words)
        loss.backward()
        hidden.grad = weight.grad = None
        return loss

    return step


def bad(s):
    return program(s, loss_of)


def good(s):
    return program(s, s.compile(loss_of))
