"""What `lanescope explain` should say of each program, written down before the programs were written and before any text was read.

Of a pair: the cause, the line, the remedy that an expert would give, how much of the bad step goes with it, and what would be
false of the good twin. Of a trap: what would be false. The patterns find words; a reader decides.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected, trap  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    "group_per_parameter": Expected(
        "AdamW has a group for each of 72 parameters, so its foreach kernels are launched for one parameter at a time",
        cause=r"group",
        place="optimizer.step()",
        owner=r"Optimizer.step|AdamW",
        remedy="put parameters of equal settings into one group",
        fix=r"group",
        gain="a third to a half: launches of the optimizer",
        forbidden=r"param(eter)? groups?"),
    "activations_saved_on_cpu": Expected(
        "each tensor that autograd saves is copied to the CPU in the forward pass and back in the backward pass (save_on_cpu)",
        cause=r"sav(e|ed).*(CPU|host)|save_on_cpu|saved_tensors",
        place="with torch.autograd.graph.save_on_cpu():",
        owner=r"save_on_cpu|pack|Memcpy|cop(y|ies)",
        remedy="keep them on the GPU if they fit, checkpoint otherwise; or save_on_cpu(pin_memory=True)",
        fix=r"checkpoint|keep.*GPU|save_on_cpu|pin_memory",
        gain="most: copies of pageable memory, each of which waits",
        forbidden=r"save_on_cpu|pageable"),
    "logits_transposed_for_loss": Expected(
        "cross_entropy gets [batch, words, time]: the softmax runs along a dimension that is not the last; its gradient is laid out anew",
        cause=r"softmax.*(dim|strid|spatial|layout|last|transpos)|transpos.*(softmax|cross_entropy|logits)",
        place="F.cross_entropy(logits.transpose(1, 2), words)",
        owner=r"cross_entropy|log_softmax",
        remedy="flatten to [batch * time, words]",
        fix=r"flatten|reshape|view\(|last dim",
        gain="a tenth to a third",
        forbidden=r"flatten|transpos"),
    "smoothed_targets_built": Expected(
        "the smoothed target distribution over all words is filled and scattered, then kl_div reads it: several tensors of tokens x words",
        cause=r"kl_div|scatter|full",
        place="F.kl_div(F.log_softmax(...), smoothed)",
        owner=r"kl_div|scatter_|loss",
        remedy="F.cross_entropy(..., label_smoothing=0.1)",
        fix=r"label_smoothing",
        gain="a third",
        forbidden=r"label_smoothing|kl_div"),
    "bilinear_layer": Expected(
        "nn.Bilinear multiplies and sums element by element for each output feature (_trilinear), without a matrix product",
        cause=r"trilinear|bilinear",
        place="mix = nn.Bilinear(width, width, width)",
        owner=r"trilinear|[Bb]ilinear",
        remedy="one product with the weight, then a bmm (or einsum)",
        fix=r"bmm|einsum|matmul|matrix product|product with",
        gain="most: element-wise kernels instead of GEMMs",
        forbidden=r"trilinear|Bilinear"),
    "diagonal_as_matrix": Expected(
        "scales are made a diagonal matrix, which a full matrix product then multiplies: n times the work of scaling rows",
        cause=r"diag",
        place="torch.diag(scale) @ weight",
        owner=r"diag|scaled",
        remedy="scale[:, None] * weight",
        fix=r"scale|broadcast|element-?wise|\* *w",
        gain="a third to a half: a GEMM of n^3",
        forbidden=r"diag"),
    "chain_from_the_left": Expected(
        "(A @ B) @ x: the product of two large matrices is formed for a thin x",
        cause=r"(order|associat|chain|left|thin|narrow|first)",
        place="a @ b @ x",
        owner=r"mm|matmul|@",
        remedy="a @ (b @ x), multi_dot",
        fix=r"multi_dot|\(b @ x\)|right|order|associat",
        gain="most: one GEMM of n^3",
        forbidden=r"multi_dot|order of"),
    "long_filter_direct": Expected(
        "conv1d with a filter of thousands of taps is computed directly",
        cause=r"conv(1d|olution).*(long|taps|direct|filter|kernel|wide)",
        place="F.conv1d(sound, response)",
        owner=r"conv",
        remedy="convolve by FFT (rfft, product, irfft)",
        fix=r"fft|FFT|Fourier",
        gain="most",
        forbidden=r"by FFT|use.*FFT"),
    "groups_convolved_one_by_one": Expected(
        "32 groups of channels pass through 32 convolutions in a Python loop, then cat",
        cause=r"32|each group|loop|group",
        place="torch.cat([conv(part) for ...])",
        owner=r"conv",
        remedy="one Conv2d(groups=32)",
        fix=r"groups ?=",
        gain="half or more: launches of small kernels",
        forbidden=r"groups ?="),
    "windows_stacked_in_python": Expected(
        "a thousand overlapping windows are sliced in Python and stacked",
        cause=r"slice|stack|loop",
        place="torch.stack([sound[:, i:i + size] for i in ...])",
        owner=r"stack|slice|cat",
        remedy="sound.unfold(1, size, hop), a view",
        fix=r"unfold|as_strided|view",
        gain="half or more: host",
        forbidden=r"aten::stack|unfold\("),
    "nms_box_by_box": Expected(
        "suppression of boxes in a Python loop: each round waits for its answer (item or nonzero) and launches a dozen small kernels",
        cause=r"wait|nonzero|item|sync",
        place="while len(order):",
        owner=r"nonzero|item|index|suppress|loop",
        remedy="all overlaps at once and one loop on the GPU or CPU (torchvision.ops.nms, batched)",
        fix=r"nms|at once|batched|keep.*GPU|once|fixed",
        gain="most: waits and launches",
        forbidden=r"nonzero"),
    "fixed_point_checked": Expected(
        "each of 40 iterations reads the residual to the CPU and waits for it",
        cause=r"item|wait|is_nonzero|sync",
        place="if change.max() < tolerance:",
        owner=r"is_nonzero|item|iterat|solve",
        remedy="test every ten iterations, or a fixed number of iterations",
        fix=r"every (n|few|ten|10|k)|less often|fixed|on the GPU|keep",
        gain="a third to a half: waits",
        forbidden=r"is_nonzero|item\(\)"),
    "finite_checks_each_layer": Expected(
        "a forward hook of each layer asks whether all values are finite: three small kernels over the activations, and a wait",
        cause=r"isfinite|is_nonzero|isnan|item|wait",
        place="if not torch.isfinite(output).all():",
        owner=r"isfinite|isnan|is_nonzero|hook|item|check",
        remedy="remove the checks, or test the loss once a step, or torch._assert_async",
        fix=r"remove|once|_assert_async|one (check|wait)|every",
        gain="a third: waits",
        forbidden=r"isfinite|is_nonzero"),
    "backward_for_each_loss": Expected(
        "four losses of one trunk each run backward(retain_graph=True), so the trunk's backward pass runs four times",
        cause=r"backward.*(4|four|again|times|times)|4.*backward|retain_graph",
        place="loss.backward(retain_graph=True)",
        owner=r"backward",
        remedy="add the losses and call backward once",
        fix=r"sum|add.*loss|once|one backward|retain_graph",
        gain="half",
        forbidden=r"retain_graph|4 backward"),
    "experts_by_mask": Expected(
        "a loop over 32 experts: nonzero of each expert's mask waits, then a small product of few rows, and index_add_",
        cause=r"nonzero|wait|each expert|loop",
        place="rows = (chosen == number).nonzero()",
        owner=r"nonzero|where|expert|index",
        remedy="sort the tokens by expert once (argsort, bincount), then grouped or batched products of a fixed capacity",
        fix=r"sort|bmm|batched|grouped|capacity|fixed size|mask",
        gain="half: waits",
        forbidden=r"nonzero"),
    "flop_counter_left_on": Expected(
        "a FlopCounterMode around the step passes each operator through Python",
        cause=r"[Ff]lop|dispatch mode|TorchDispatchMode|__torch_dispatch__",
        place="with FlopCounterMode(display=False):",
        owner=r"flop|Python|dispatch",
        remedy="count once, outside the loop",
        fix=r"remove|once|outside",
        gain="half: host",
        forbidden=r"[Ff]lop_?[Cc]ounter"),
    "memory_summary_each_step": Expected(
        "torch.cuda.memory_summary() builds a table of text on the host for each layer",
        cause=r"memory_summary|memory_stats",
        place="notes.append(torch.cuda.memory_summary())",
        owner=r"memory_summary|memory_stats|forward|step|Python",
        remedy="ask memory_allocated() rarely, or every n steps",
        fix=r"every|less often|rare|remove|outside",
        gain="a third: host without events",
        forbidden=r"memory_(summary|stats)"),
    "launches_blocking": Expected(
        "CUDA_LAUNCH_BLOCKING=1: each launch returns when its kernel ends, so host and GPU take turns",
        cause=r"LAUNCH_BLOCKING|launch.*(wait|return|block)",
        place="the environment",
        owner=r"launch",
        remedy="unset CUDA_LAUNCH_BLOCKING",
        fix=r"CUDA_LAUNCH_BLOCKING",
        gain="a third to a half",
        forbidden=r"LAUNCH_BLOCKING"),
    "queue_of_keys_copied": Expected(
        "a queue of a million keys (MoCo) is copied whole by cat for each batch of 64 new ones",
        cause=r"cat",
        place="state['queue'] = torch.cat([keys, state['queue'][:-rows]])",
        owner=r"cat|queue",
        remedy="write into a fixed buffer at a pointer (ring): queue[at:at + n] = keys",
        fix=r"ring|in place|preallocat|fixed|pointer|buffer|write",
        gain="a tenth to a third: bytes copied",
        forbidden=r"aten::cat"),
    "barrier_each_step": Expected(
        "dist.barrier() after each step: a collective, and the host waits for the GPU",
        cause=r"barrier",
        place="dist.barrier()",
        owner=r"barrier",
        remedy="remove the barrier; the gradients' all-reduce keeps the ranks in step",
        fix=r"remove|not needed|without",
        gain="a tenth to a third: the host cannot run ahead",
        forbidden=r"barrier"),
    "sharpness_aware_step": trap(
        "SAM needs two passes of the same batch: the weights differ between them",
        r"again|twice|same (input|batch|work)|first result"),
    "tf32_is_on": trap(
        "float32 with TF32 switched on: advice to switch it on is false",
        r"allow_tf32|set_float32_matmul_precision|TF32 is off|enable TF32"),
    "packed_by_one_cat": trap(
        "ragged sequences are packed by one cat and split by views, which is the good way",
        r"aten::cat|preallocate|grow"),
    "views_before_products": trap(
        "heads are taken apart by views that bmm reads as they are: nothing is copied",
        r"contiguous|transpos|permut|layout"),
}
