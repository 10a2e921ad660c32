"""What `lanescope explain` should say of each pair, written down before anything was recorded.

Each fault has an owner (who holds the time), a mechanism (why) and a remedy, as sentences and as patterns that a text of explain
is searched for, a sentence that would be false of the good twin, and the share of the bad step that the fault is expected to hold.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    "rope_each_layer": Expected(
        owner=r"aten::(outer|cos|sin|arange|mul|to|_to_copy|cat)|loop of 12",
        mechanism="the same small operators (arange, outer, cos, sin, casts) run again in each of 12 layers with the same result; launch-bound",
        cause=r"cos|sin|arange|12 (x|times|rounds)|launch", remedy="compute the table once, keep it",
        fix=r"once|keep|reuse|outside|before the loop|CUDA graph|torch\.compile|compile", forbidden=r"same (result|values) each", gain="40 %"),
    "attention_per_sequence": Expected(
        owner=r"scaled_dot_product|loop of 48|attention",
        mechanism="48 calls of attention, one a sequence, each too small for the GPU; launch-bound",
        cause=r"48|loop|one (sequence|sample)", remedy="one call over the padded batch with a mask, or nested tensors",
        fix=r"one call|batch|pad|nested|varlen", forbidden=r"loop of 48", gain="75 %"),
    "mask_each_layer": Expected(
        owner=r"aten::(full|triu|repeat|copy_)|scaled_dot_product|attention|fmha",
        mechanism="a mask of length x length is filled, cut, cast, copied for each head in each layer, and read by an attention that is not flash",
        cause=r"mask|triu|repeat|fill|copies|efficient", remedy="is_causal=True, or build the mask once, without copies",
        fix=r"is_causal|mask once|build .*once|no mask|without .*mask", forbidden=r"is_causal|mask", gain="60 %"),
    "repeat_kv": Expected(
        owner=r"repeat_interleave|aten::(index_select|expand|clone|copy_|contiguous)",
        mechanism="keys and values of the cache are copied 8 times for each layer: memory-bound copies",
        cause=r"cop(y|ies)|repeat_interleave|bytes", remedy="grouped-query attention: enable_gqa, or group the query heads",
        fix=r"gqa|group|expand|without cop|no cop|avoid .*cop", forbidden=r"repeat_interleave", gain="70 %"),
    "logits_of_all_positions": Expected(
        owner=r"aten::(linear|matmul|mm)",
        mechanism="one product with 64,000 columns over 8,192 rows is most of the step; 4 of its rows are used",
        cause=r"64,?000|8,?192|select|slice|unused|few (rows|of)", remedy="take the last position before the head",
        fix=r"before the (head|product|linear)|last position|select .*before|only .*rows", forbidden=r"64,?000 .*8,?192", gain="75 %"),
    "unused_head": Expected(
        owner=r"aten::(linear|log_softmax|_log_softmax|addmm)",
        mechanism="linear to 32,000 classes and log_softmax whose results nothing uses",
        cause=r"unused|not used|nothing (uses|reads)|result", remedy="do not compute it, or only every n steps",
        fix=r"remove|leave .*out|do not compute|drop|every n|skip", forbidden=r"nothing (uses|reads)|unused", gain="40 %"),
    "forward_twice": Expected(
        owner=r"forward|aten::(linear|addmm|gelu|argmax)",
        mechanism="the same sequence of operators with the same shapes runs twice a step: once for the loss, once for the accuracy",
        cause=r"twice|2 x|two times|again|same (operators|sequence|work)|repeat", remedy="use the logits of the first forward",
        fix=r"reuse|use the (first|result)|once|do not run", forbidden=r"twice|a second time", gain="24 %"),
    "frozen_backbone_with_grad": Expected(
        owner=r"backward|AddmmBackward0|GeluBackward0",
        mechanism="backward of the backbone makes gradients that no optimizer uses",
        cause=r"gradient|grad|backward", remedy="no_grad or requires_grad_(False) on the backbone; detach",
        fix=r"no_grad|requires_grad|detach|frozen", forbidden=r"requires_grad|no_grad", gain="62 %"),
    "weight_norm_each_micro_step": Expected(
        owner=r"_weight_norm|weight_norm|linalg_vector_norm",
        mechanism="the norm of a 4096x4096 weight and the scaled weight are computed for each of 8 micro batches: the same each time",
        cause=r"16 (x|times)|8 (x|times)|again|same|repeat|loop|weight_norm", remedy="parametrize.cached(), or compute the weight once a step",
        fix=r"cached|once|reuse|keep", forbidden=r"8 times|16 x|again", gain="50 %"),
    "tiny_micro_batches": Expected(
        owner=r"loop of 16|forward|backward|aten::",
        mechanism="16 micro batches of 8 rows: too little work for each launch; launch-bound",
        cause=r"16|launch|small|tiny", remedy="fewer, larger micro batches",
        fix=r"larger|batch|fewer|CUDA graph", forbidden=r"loop of 16", gain="85 %"),
    "grad_norm_log": Expected(
        owner=r"aten::item|_local_scalar_dense|loop of 2\d|norm",
        mechanism="26 norms and 26 waits for the GPU (item), one a parameter",
        cause=r"item|wait|sync", remedy="one _foreach_norm, keep the norms on the GPU, log rarely",
        fix=r"keep .*GPU|foreach|fewer|log|once|every n|stack", forbidden=r"item|wait(s)? for the GPU", gain="50 %"),
    "anomaly_detection": Expected(
        owner=r"backward|isnan|any|is_nonzero|item|anomaly",
        mechanism="anomaly detection: each node of the backward checks its results for NaN and waits for the GPU",
        cause=r"nan|anomaly|item|wait|sync", remedy="set_detect_anomaly(False)",
        fix=r"anomaly", forbidden=r"anomaly", gain="60 %"),
    "python_sum_of_losses": Expected(
        owner=r"loop of 1\d\d|aten::(add|select|unbind)|AddBackward0|SelectBackward0|UnbindBackward0",
        mechanism="160 additions of single numbers, forward and backward: launch-bound",
        cause=r"loop|160|launch|small|tiny|one number|scalar", remedy="losses.sum() or mean()",
        fix=r"one call|sum|mean|vector|batch|stack", forbidden=r"loop of 1\d\d", gain="75 %"),
    "loss_weights_as_tensors": Expected(
        owner=r"aten::(to|copy_|_to_copy|lift_fresh)|cudaStreamSynchronize|loop of 40|Memcpy HtoD",
        mechanism="40 copies of 4 bytes from pageable memory, each with a wait",
        cause=r"cop(y|ies)|HtoD|4 B|wait|sync|40", remedy="Python numbers, or one tensor made once",
        fix=r"once|Python number|keep|one (copy|tensor)|stack|outside|device=", forbidden=r"copies .*pageable|40 copies", gain="60 %"),
    "slow_custom_backward": Expected(
        owner=r"LookupBackward|index_add",
        mechanism="the backward of Lookup costs many times its forward: 32 rounds that copy and add the whole table",
        cause=r"LookupBackward|32|loop|backward .*(times|x)|index_add", remedy="one index_add_ in place",
        fix=r"in place|index_add_|one call|once|batch|forward", forbidden=r"LookupBackward.*(times|x) ", gain="75 %"),
    "index_add_contention": Expected(
        owner=r"index_add|indexFunc|index_add_kernel|indexAdd",
        mechanism="one kernel adds all rows into 8: the atomics wait for each other, far below the memory's bandwidth",
        cause=r"atomic|contention|bandwidth|far below|of peak|conflict|same (address|rows)", remedy="a product with one-hot rows, sort and segment sums, or partial sums",
        fix=r"one.hot|sort|segment|partial|bincount|matmul|fewer atomics", forbidden=r"atomic", gain="85 %"),
    "transposed_table": Expected(
        owner=r"aten::index|index_elementwise|gather",
        mechanism="a gather whose source has strides (1, rows): each element comes from another cache line; far below the memory's bandwidth",
        cause=r"stride|contiguous|bandwidth|coalesc|transposed|layout", remedy="keep the table contiguous by row",
        fix=r"contiguous|layout|store", forbidden=r"stride|coalesc", gain="70 %"),
    "sort_for_top1": Expected(
        owner=r"aten::sort|sort",
        mechanism="a full sort of 1024 x 32000 of which one value a row is used",
        cause=r"sort", remedy="max, argmax or topk",
        fix=r"topk|argmax|max\(", forbidden=r"sort", gain="75 %"),
    "upsample_before_conv": Expected(
        owner=r"upsample|interpolate|conv|add_",
        mechanism="upsampling and convolutions on 256 x 256 pixels are memory-bound; a 1x1 convolution needs only the small image",
        cause=r"upsample|interpolate|memory|bytes|larger image|size", remedy="convolve first, then upsample",
        fix=r"before|first|after|order|smaller", forbidden=r"convolve first|before the upsampl", gain="90 %"),
    "product_by_broadcast": Expected(
        owner=r"aten::(mul|sum)",
        mechanism="a product by broadcasting writes 268 MB and reads it again for the sum",
        cause=r"broadcast|mul.*sum|268|256 MiB|bytes|memory", remedy="torch.bmm, matmul or einsum",
        fix=r"bmm|matmul|einsum|fuse|compile", forbidden=r"broadcast", gain="80 %"),
    "pad_before_conv": Expected(
        owner=r"constant_pad_nd|aten::pad|pad",
        mechanism="F.pad fills and copies each image before its convolution",
        cause=r"pad", remedy="padding=1 of the convolution",
        fix=r"padding=|padding of|conv.*pad", forbidden=r"F\.pad|constant_pad", gain="45 %"),
    "small_inverses": Expected(
        owner=r"linalg_inv|loop of 48|linalg",
        mechanism="48 inversions of 4x4 matrices, each of several kernels, copies and a wait for the error code",
        cause=r"loop|48|wait|sync|launch|small", remedy="one batched inv_ex",
        fix=r"batch|one call|inv_ex|stack", forbidden=r"loop of 48", gain="80 %"),
    "promoted_by_a_parameter": Expected(
        owner=r"aten::(mul|add|tanh|to|copy_|_to_copy)|Mul|Tanh|backward",
        mechanism="mul by a float32 vector makes activations float32; the operators after it move twice the bytes, and casts go back",
        cause=r"float32|fp32|cast|float\b|dtype|precision", remedy="keep scale and shift in bf16 or cast them",
        fix=r"bf16|bfloat16|cast|one (dtype|type)|same (dtype|type)|fuse|compile", forbidden=r"cast|float32", gain="40 %"),
    "autocast_per_layer": Expected(
        owner=r"aten::(to|_to_copy|copy_)|autocast|ToCopyBackward0",
        mechanism="the same weight 4096 x 4096 is cast to bf16 16 times a step, and its gradient back",
        cause=r"cast|16|same|again|copy", remedy="one autocast around the loop (its cache keeps the cast), or keep the weight in bf16",
        fix=r"autocast|cache|once|keep", forbidden=r"cast .*(16|again)", gain="60 %"),
    "augment_before_crop": Expected(
        owner=r"aten::(mul|add|sub|div|clamp|to|copy_|mean)|elementwise",
        mechanism="a chain of elementwise kernels on whole images, of which a ninth is used (slice, then contiguous)",
        cause=r"chain|elementwise|memory|bytes|slice|fus", remedy="crop first; fuse the chain",
        fix=r"crop|slice .*(first|before)|fuse|compile", forbidden=r"crop first", gain="85 %"),
    "float_images": Expected(
        owner=r"Memcpy HtoD|aten::(to|copy_|_to_copy)|copy",
        mechanism="77 MB of float32 copied from pinned memory each step, which nothing overlaps",
        cause=r"HtoD|cop(y|ies)|PCIe|GB/s|host to", remedy="send uint8 and convert on the GPU; overlap the copy",
        fix=r"uint8|smaller|fewer bytes|narrow|overlap|prefetch|stream", forbidden=r"pinned memory would|pin", gain="70 %"),
    "formatting_a_tensor": Expected(
        owner=r"aten::(item|_local_scalar_dense|masked_select|isfinite|abs|min|max)|code|Python",
        mechanism="a tensor is formatted as text: many small operators, waits and copies to the CPU, and Python",
        cause=r"item|wait|sync|format|print|text|copy|Python", remedy="do not format unless the level is on; log shapes, or rarely",
        fix=r"format|print|repr|log|remove|keep .*GPU", forbidden=r"item|waits? for the GPU", gain="85 %"),
    "pickling_thread": Expected(
        owner=r"code|Python|between|thread|launch",
        mechanism="holes of Python without events at random places while the GPU idles: another thread holds the interpreter's lock",
        cause=r"thread|lock|GIL|holes|random|Python", remedy="another process for it, or less work in the thread",
        fix=r"process|thread|GIL|lock", forbidden=r"another thread|GIL", gain="85 %"),
}
