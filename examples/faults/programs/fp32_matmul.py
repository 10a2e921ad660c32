"""float32 products that do not use the tensor cores.

Wrong: by default torch multiplies float32 in full precision, on the ordinary cores.
In the trace: aten::addmm with float inputs, kernels with `sgemm` or `simt` in their names.
Fix: torch.set_float32_matmul_precision("high") (TF32: inputs rounded to 10 bits of mantissa), where the model allows it.
"""

import torch


def program(s, precision):
    torch.set_float32_matmul_precision(precision)
    width = s.pick(4096, 32)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(3)]).to(s.device)
    x = s.randn(s.pick(4096, 8), width, dtype=torch.float32)

    @torch.inference_mode()
    def step():
        return model(x).square().mean()

    return step


def bad(s):
    return program(s, "highest")


def good(s):
    return program(s, "high")
