"""What `lanescope explain` should say of each program, written down before anything that it says was read.

Of a pair: the cause, the place, the remedy that an expert would give, and what would be false of the good twin. Of a trap: what
would be false. The patterns find words; a reader decides.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected, trap  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    "advantages_step_by_step": Expected(
        "a loop of 256 rounds of mul, add, sub, copy_ on small rows: launches; each round needs the one before",
        r"loop of 2[45]\d", "gae(), before the forward pass of the update", r"loop|aten::(mul|add|sub|select|copy_)",
        "one kernel for the recurrence (compile, scan), a product with a matrix of powers, or a CUDA graph; not 'batch'",
        r"compile|CUDA graph|scan|one kernel", forbidden=r"loop of 2[45]\d"),
    "distribution_checks_its_arguments": Expected(
        "each Categorical checks its arguments: a comparison, all, and a wait for the answer (is_nonzero), 3 a round, 24 rounds",
        r"is_nonzero|aten::all|item|validat", "distributions/distribution.py __init__ and _validate_sample, from step",
        r"is_nonzero|distribution|aten::all|loop of 2\d", "validate_args=False", r"validate_args|keep .*GPU|no check", forbidden=r"is_nonzero"),
    "frames_compressed_in_the_loop": Expected(
        "zlib.compress on the CPU: code without operators, while the GPU idles", r"compress|code (between|before|after)|Python",
        "zlib.compress in step", r"compress|step|code", "in a thread or process, every n steps, or after the rollout",
        r"thread|process|less often|every n|out of the step|compress", forbidden=r"compress"),
    "linear_after_gather": Expected(
        "the linear layer and its backward run on 16 times as many rows as there are nodes, of a gather", r"linear|mm|index",
        "Convolution.forward, map", r"linear|index", "linear map and relu before the gather", r"before|gather first|nodes",
        forbidden=r"before the (gather|index)"),
    "deterministic_left_on": Expected(
        "index_add sorts its indices (index_put with accumulate), since deterministic algorithms are on; empty tensors are filled",
        r"determinis|sort|index_put|index_add", "index_add in Convolution.forward, and the backward of indexing", r"index_add|index_put",
        "switch use_deterministic_algorithms off", r"determinis", forbidden=r"determinis"),
    "tables_one_by_one": Expected(
        "a loop of 26 lookups, each a small kernel: launches", r"loop of 2[456]|26", "Ranker.forward", r"embedding|loop",
        "one table with offsets, one lookup", r"one (call|table|lookup)|batch|stack|offset|compile|CUDA graph", forbidden=r"loop of 2[456]"),
    "negatives_by_numpy": Expected(
        "numpy's choice with probabilities: code without operators, each step", r"choice|code (between|before|after)|Python",
        "rng.choice in step", r"choice|step|code", "keep the running sum and use searchsorted; torch.multinomial on the GPU; workers",
        r"once|worker|GPU|thread|stack|choice", forbidden=r"choice"),
    "embedding_with_max_norm": Expected(
        "embedding_renorm_ of max_norm: sorts the words, finds the different ones, waits for their number, scales rows",
        r"renorm|max_norm", "table(text) in step", r"renorm|embedding", "no max_norm, or scale the table rarely", r"max_norm|renorm",
        forbidden=r"max_norm|renorm"),
    "shuffle_the_whole_set": Expected(
        "randperm of 8 million: a sort, to use 512 of it", r"randperm", "torch.randperm in step", r"randperm",
        "randint, or one permutation an epoch", r"randint|epoch|once|less often", forbidden=r"randperm"),
    "attention_over_empty_cache": Expected(
        "attention over all 8,192 places of the cache under a mask; memory-bound reads of rows that the mask hides",
        r"mask|attention", "DecoderLayer.forward", r"attention", "cut the cache to the tokens that are there", r"slice|cut|length|narrow",
        forbidden=r"mask"),
    "beams_copy_the_cache": Expected(
        "aten::index gathers the whole cache of each layer after each token: memory-bound copies", r"aten::index|gather|cop(y|ies)",
        "cache[number][parents] in step", r"aten::index|step", "reorder only what differs, or keep a table of parents",
        r"only|in place|table|avoid|view|less", forbidden=r"aten::index"),
    "guidance_in_two_calls": Expected(
        "the model runs twice in a round with equal shapes; launches of small kernels", r"loop of|launch|twice|2 x",
        "denoise range in step", r"denoise|loop|linear", "one call for both halves", r"batch|one call|CUDA graph|compile",
        forbidden=r"twice|a second time"),
    "words_projected_at_each_noise_level": Expected(
        "the linear maps of the words (k, v) take most of the time and give the same result in each of 8 rounds",
        r"same|again|loop of (8|32)|linear", "CrossLayer.keys", r"linear|loop", "compute keys and values once", r"once|keep|cache|reuse",
        forbidden=r"again|same result"),
    "attention_weights_nobody_reads": Expected(
        "MultiheadAttention with need_weights writes all scores out (bmm, softmax, mean), no fused attention",
        r"softmax|bmm|scores|weights|MultiheadAttention", "attention(x, x, x) in Encoder.forward", r"bmm|softmax|attention",
        "need_weights=False", r"need_weights|scaled_dot_product", forbidden=r"need_weights"),
    "frames_thrown_away": Expected(
        "stft makes 16 times the frames that are used (slice with a step)", r"stft|fft", "SpeechFrontEnd.forward", r"stft|fft|matmul",
        "hop_length=160", r"hop|part|used|slice|fewer", forbidden=r"hop|are used"),
    "fft_of_a_prime_length": Expected(
        "FFT of length 8,209, a prime: Bluestein's algorithm, several times slower", r"fft.*(prime|8,?209|length)|prime|Bluestein|factor",
        "LongConvolution.forward", r"fft", "pad to a length with small factors", r"pad|factor|power of two|length", forbidden=r"prime|Bluestein"),
    "blur_in_two_dimensions": Expected(
        "a depthwise convolution with a window of 31 x 31", r"conv2d|convolution", "F.conv2d in step", r"conv",
        "two convolutions with rows and columns (separable)", r"separab|1 x|row.*column|two (passes|convolutions)", forbidden=r"separab|31 x 31"),
    "convolution_without_a_library": Expected(
        "convolutions run as im2col and a product an image (slow_conv2d), for cuDNN is off", r"slow_conv2d|im2col|thnn_conv2d|without cuDNN",
        "the net's convolutions", r"conv", "switch cuDNN on again", r"cuDNN|cudnn|oneDNN|mkldnn", forbidden=r"slow_conv2d|is off"),
    "ranking_metric_by_pairs": Expected(
        "a comparison of all pairs, its cast to float and mean: 268 million elements", r"aten::(gt|to|mean|_to_copy|copy_)|pairs|broadcast",
        "the last lines of step", r"aten::(gt|to|mean)", "ranks: sort once", r"sort|rank|fus|compile|broadcast", forbidden=r"aten::gt"),
    "angles_on_complex_numbers": Expected(
        "angle, complex mul, exp, and products: a chain of elementwise kernels", r"angle|exp|chain|elementwise", "step", r"angle|exp|mul",
        "abs()", r"abs|fus|compile", forbidden=r"angle"),
    "lora_makes_the_whole_weight": Expected(
        "b @ a, mul and add make a 4096 x 4096 weight at each call; its gradient is a product of that size too",
        r"add|mul|mm|matmul", "LoraLinear.forward", r"aten::(add|mul|matmul|mm)|Mm|Mul|Add", "apply a and b to x, not to the weight",
        r"low.rank|to x|instead of the weight|order|associat", forbidden=r"low.rank"),
    "clipped_each_micro_step": Expected(
        "clip_grad_norm_ without foreach after each of 6 backward passes: loops over 50 gradients; launches",
        r"loop of (49|50)|linalg_vector_norm|clip", "clip_grad_norm_ in step", r"loop|clip|norm", "once before optimizer.step, with foreach",
        r"once|foreach|clip_grad_norm_", forbidden=r"loop of (49|50).*norm"),
    "weight_decay_in_the_loss": Expected(
        "a loop of 42 rounds of pow, sum, add over the weights, and its backward: memory-bound and launches",
        r"loop of 4[12]|pow|PowBackward0", "the genexpr in step", r"pow|loop", "weight_decay of the optimizer",
        r"weight_decay|foreach|one call", forbidden=r"loop of 4[12].*pow|pow"),
    "norm_by_singular_values": Expected(
        "svd of each weight, which waits and runs long small kernels", r"svd|matrix_norm", "largest()", r"svd|matrix_norm",
        "power iteration", r"power iteration|spectral_norm|svd_lowrank|less often|every n", forbidden=r"svd"),
    "jacobian_row_by_row": Expected(
        "24 backward passes through one graph, one a row", r"loop of 2[34]|24|backward", "autograd.grad in step", r"backward|loop|autograd",
        "is_grads_batched=True, jacrev, vmap", r"is_grads_batched|vmap|jacrev|batch|one call", forbidden=r"loop of 2[34]|24 backward"),
    "histograms_each_step": Expected(
        "numpy's histogram of each weight on the CPU, after a copy from the GPU to pageable memory", r"histogram|code (between|before|after)|Python",
        "np.histogram in step", r"histogram|step|code|aten::(to|_to_copy|copy_)", "every n steps, torch.histc on the GPU, another thread",
        r"every n|less often|GPU|thread|out of the step", forbidden=r"histogram"),
    "gradients_through_gloo": Expected(
        "26 round trips through the CPU and 26 sums with gloo, one a gradient", r"gloo|all_?reduce|round trip|loop of 2[56]",
        "average()", r"gloo|all_?reduce|average|loop", "one flat buffer, NCCL, DDP", r"one (call|buffer)|bucket|flat|larger|NCCL|DDP|keep .*GPU",
        forbidden=r"loop of 2[56]|26 "),
    "twin_critics": trap("two different models of one shape", r"same forward|use (its|the first) result|run(s)? again|a second time"),
    "cells_that_hear_themselves": trap("each round needs the one before", r"^(?!.*needs the one before).*batch all rounds|whole sequence"),
    "loss_read_once": trap("the GPU has work for the whole step", r"host-sync|CPU-bound|launch-bound|keep the value"),
    "whole_order_is_used": trap("all of the order is used", r"topk|torch\.max|argmax"),
    "prefetched_batches": trap("copies run beside kernels", r"hold up|not pinned|pin_memory|pageable|a step ahead"),
    "scaler_as_documented": trap("standard mixed precision", r"remove the (wait|scaler)|CPU-bound"),
}
