"""What `lanescope explain` should say of each pair, written down before anything was recorded.

Each fault has an owner (who holds the time), a mechanism (why) and a remedy, as sentences and as patterns that a text of explain
is searched for, a sentence that would be false of the good twin, and the share of the bad step that the fault is expected to hold.
"""

from __future__ import annotations

import dataclasses
from typing import Dict


@dataclasses.dataclass(frozen=True)
class Expected:
    owner: str  # pattern
    mechanism: str  # a sentence
    cause: str  # pattern of the mechanism
    remedy: str  # a sentence
    fix: str  # pattern of the remedy
    forbidden: str  # pattern: false of the good twin
    share: str  # of the bad step


EXPECTED: Dict[str, Expected] = {
    "rope_each_layer": Expected(
        r"aten::(outer|cos|sin|arange|mul|to|_to_copy|cat)|loop of 12",
        "the same small operators (arange, outer, cos, sin, casts) run again in each of 12 layers with the same result; launch-bound",
        r"cos|sin|arange|12 (x|times|rounds)|launch", "compute the table once, keep it",
        r"once|keep|reuse|outside|before the loop|CUDA graph|torch\.compile|compile", r"same (result|values) each", "40 %"),
    "attention_per_sequence": Expected(
        r"scaled_dot_product|loop of 48|attention",
        "48 calls of attention, one a sequence, each too small for the GPU; launch-bound",
        r"48|loop|one (sequence|sample)", "one call over the padded batch with a mask, or nested tensors",
        r"one call|batch|pad|nested|varlen", r"loop of 48", "75 %"),
    "mask_each_layer": Expected(
        r"aten::(full|triu|repeat|copy_)|scaled_dot_product|attention|fmha",
        "a mask of length x length is filled, cut, cast, copied for each head in each layer, and read by an attention that is not flash",
        r"mask|triu|repeat|fill|copies|efficient", "is_causal=True, or build the mask once, without copies",
        r"is_causal|mask once|build .*once|no mask|without .*mask", r"is_causal|mask", "60 %"),
    "repeat_kv": Expected(
        r"repeat_interleave|aten::(index_select|expand|clone|copy_|contiguous)",
        "keys and values of the cache are copied 8 times for each layer: memory-bound copies",
        r"cop(y|ies)|repeat_interleave|bytes", "grouped-query attention: enable_gqa, or group the query heads",
        r"gqa|group|expand|without cop|no cop|avoid .*cop", r"repeat_interleave", "70 %"),
    "logits_of_all_positions": Expected(
        r"aten::(linear|matmul|mm)",
        "one product with 64,000 columns over 8,192 rows is most of the step; 4 of its rows are used",
        r"64,?000|8,?192|select|slice|unused|few (rows|of)", "take the last position before the head",
        r"before the (head|product|linear)|last position|select .*before|only .*rows", r"64,?000 .*8,?192", "75 %"),
    "unused_head": Expected(
        r"aten::(linear|log_softmax|_log_softmax|addmm)",
        "linear to 32,000 classes and log_softmax whose results nothing uses",
        r"unused|not used|nothing (uses|reads)|result", "do not compute it, or only every n steps",
        r"remove|leave .*out|do not compute|drop|every n|skip", r"nothing (uses|reads)|unused", "40 %"),
    "forward_twice": Expected(
        r"forward|aten::(linear|addmm|gelu|argmax)",
        "the same sequence of operators with the same shapes runs twice a step: once for the loss, once for the accuracy",
        r"twice|2 x|two times|again|same (operators|sequence|work)|repeat", "use the logits of the first forward",
        r"reuse|use the (first|result)|once|do not run", r"twice|a second time", "24 %"),
    "frozen_backbone_with_grad": Expected(
        r"backward|AddmmBackward0|GeluBackward0",
        "backward of the backbone makes gradients that no optimizer uses",
        r"gradient|grad|backward", "no_grad or requires_grad_(False) on the backbone; detach",
        r"no_grad|requires_grad|detach|frozen", r"requires_grad|no_grad", "62 %"),
    "weight_norm_each_micro_step": Expected(
        r"_weight_norm|weight_norm|linalg_vector_norm",
        "the norm of a 4096x4096 weight and the scaled weight are computed for each of 8 micro batches: the same each time",
        r"16 (x|times)|8 (x|times)|again|same|repeat|loop|weight_norm", "parametrize.cached(), or compute the weight once a step",
        r"cached|once|reuse|keep", r"8 times|16 x|again", "50 %"),
    "tiny_micro_batches": Expected(
        r"loop of 16|forward|backward|aten::",
        "16 micro batches of 8 rows: too little work for each launch; launch-bound",
        r"16|launch|small|tiny", "fewer, larger micro batches",
        r"larger|batch|fewer|CUDA graph", r"loop of 16", "85 %"),
    "grad_norm_log": Expected(
        r"aten::item|_local_scalar_dense|loop of 2\d|norm",
        "26 norms and 26 waits for the GPU (item), one a parameter",
        r"item|wait|sync", "one _foreach_norm, keep the norms on the GPU, log rarely",
        r"keep .*GPU|foreach|fewer|log|once|every n|stack", r"item|wait(s)? for the GPU", "50 %"),
    "anomaly_detection": Expected(
        r"backward|isnan|any|is_nonzero|item|anomaly",
        "anomaly detection: each node of the backward checks its results for NaN and waits for the GPU",
        r"nan|anomaly|item|wait|sync", "set_detect_anomaly(False)",
        r"anomaly", r"anomaly", "60 %"),
    "python_sum_of_losses": Expected(
        r"loop of 1\d\d|aten::(add|select|unbind)|AddBackward0|SelectBackward0|UnbindBackward0",
        "160 additions of single numbers, forward and backward: launch-bound",
        r"loop|160|launch|small|tiny|one number|scalar", "losses.sum() or mean()",
        r"one call|sum|mean|vector|batch|stack", r"loop of 1\d\d", "75 %"),
    "loss_weights_as_tensors": Expected(
        r"aten::(to|copy_|_to_copy|lift_fresh)|cudaStreamSynchronize|loop of 40|Memcpy HtoD",
        "40 copies of 4 bytes from pageable memory, each with a wait",
        r"cop(y|ies)|HtoD|4 B|wait|sync|40", "Python numbers, or one tensor made once",
        r"once|Python number|keep|one (copy|tensor)|stack|outside|device=", r"copies .*pageable|40 copies", "60 %"),
    "slow_custom_backward": Expected(
        r"LookupBackward|index_add",
        "the backward of Lookup costs many times its forward: 32 rounds that copy and add the whole table",
        r"LookupBackward|32|loop|backward .*(times|x)|index_add", "one index_add_ in place",
        r"in place|index_add_|one call|once|batch|forward", r"LookupBackward.*(times|x) ", "75 %"),
    "index_add_contention": Expected(
        r"index_add|indexFunc|index_add_kernel|indexAdd",
        "one kernel adds all rows into 8: the atomics wait for each other, far below the memory's bandwidth",
        r"atomic|contention|bandwidth|far below|of peak|conflict|same (address|rows)", "a product with one-hot rows, sort and segment sums, or partial sums",
        r"one.hot|sort|segment|partial|bincount|matmul|fewer atomics", r"atomic", "85 %"),
    "transposed_table": Expected(
        r"aten::index|index_elementwise|gather",
        "a gather whose source has strides (1, rows): each element comes from another cache line; far below the memory's bandwidth",
        r"stride|contiguous|bandwidth|coalesc|transposed|layout", "keep the table contiguous by row",
        r"contiguous|layout|store", r"stride|coalesc", "70 %"),
    "sort_for_top1": Expected(
        r"aten::sort|sort",
        "a full sort of 1024 x 32000 of which one value a row is used",
        r"sort", "max, argmax or topk",
        r"topk|argmax|max\(", r"sort", "75 %"),
    "upsample_before_conv": Expected(
        r"upsample|interpolate|conv|add_",
        "upsampling and convolutions on 256 x 256 pixels are memory-bound; a 1x1 convolution needs only the small image",
        r"upsample|interpolate|memory|bytes|larger image|size", "convolve first, then upsample",
        r"before|first|after|order|smaller", r"convolve first|before the upsampl", "90 %"),
    "product_by_broadcast": Expected(
        r"aten::(mul|sum)",
        "a product by broadcasting writes 268 MB and reads it again for the sum",
        r"broadcast|mul.*sum|268|256 MiB|bytes|memory", "torch.bmm, matmul or einsum",
        r"bmm|matmul|einsum|fuse|compile", r"broadcast", "80 %"),
    "pad_before_conv": Expected(
        r"constant_pad_nd|aten::pad|pad",
        "F.pad fills and copies each image before its convolution",
        r"pad", "padding=1 of the convolution",
        r"padding=|padding of|conv.*pad", r"F\.pad|constant_pad", "45 %"),
    "small_inverses": Expected(
        r"linalg_inv|loop of 48|linalg",
        "48 inversions of 4x4 matrices, each of several kernels, copies and a wait for the error code",
        r"loop|48|wait|sync|launch|small", "one batched inv_ex",
        r"batch|one call|inv_ex|stack", r"loop of 48", "80 %"),
    "promoted_by_a_parameter": Expected(
        r"aten::(mul|add|tanh|to|copy_|_to_copy)|Mul|Tanh|backward",
        "mul by a float32 vector makes activations float32; the operators after it move twice the bytes, and casts go back",
        r"float32|fp32|cast|float\b|dtype|precision", "keep scale and shift in bf16 or cast them",
        r"bf16|bfloat16|cast|one (dtype|type)|same (dtype|type)|fuse|compile", r"cast|float32", "40 %"),
    "autocast_per_layer": Expected(
        r"aten::(to|_to_copy|copy_)|autocast|ToCopyBackward0",
        "the same weight 4096 x 4096 is cast to bf16 16 times a step, and its gradient back",
        r"cast|16|same|again|copy", "one autocast around the loop (its cache keeps the cast), or keep the weight in bf16",
        r"autocast|cache|once|keep", r"cast .*(16|again)", "60 %"),
    "augment_before_crop": Expected(
        r"aten::(mul|add|sub|div|clamp|to|copy_|mean)|elementwise",
        "a chain of elementwise kernels on whole images, of which a ninth is used (slice, then contiguous)",
        r"chain|elementwise|memory|bytes|slice|fus", "crop first; fuse the chain",
        r"crop|slice .*(first|before)|fuse|compile", r"crop first", "85 %"),
    "float_images": Expected(
        r"Memcpy HtoD|aten::(to|copy_|_to_copy)|copy",
        "77 MB of float32 copied from pinned memory each step, which nothing overlaps",
        r"HtoD|cop(y|ies)|PCIe|GB/s|host to", "send uint8 and convert on the GPU; overlap the copy",
        r"uint8|smaller|fewer bytes|narrow|overlap|prefetch|stream", r"pinned memory would|pin", "70 %"),
    "formatting_a_tensor": Expected(
        r"aten::(item|_local_scalar_dense|masked_select|isfinite|abs|min|max)|code|Python",
        "a tensor is formatted as text: many small operators, waits and copies to the CPU, and Python",
        r"item|wait|sync|format|print|text|copy|Python", "do not format unless the level is on; log shapes, or rarely",
        r"format|print|repr|log|remove|keep .*GPU", r"item|waits? for the GPU", "85 %"),
    "pickling_thread": Expected(
        r"code|Python|between|thread|launch",
        "holes of Python without events at random places while the GPU idles: another thread holds the interpreter's lock",
        r"thread|lock|GIL|holes|random|Python", "another process for it, or less work in the thread",
        r"process|thread|GIL|lock", r"another thread|GIL", "85 %"),
}
