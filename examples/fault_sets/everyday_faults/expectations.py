"""What `lanescope explain` should say of each pair, written down before anything it says of them was read.

BLIND: every third in alphabetical order. Nobody read what explain says of these before it was final.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    "assignment_row_by_row": Expected(
        "a loop of 64 rounds fills rows one by one", r"loop of 6\d.*(copy_|select)", remedy="one stack or index_copy over all rows",
        fix=r"stack|batch all rounds|one call", forbidden=r"loop of 6\d"),
    "autocast_without_cache": Expected(
        "the same weight is cast in each of 12 rounds", r"cast", remedy="let autocast cache it, or cast once",
        fix=r"cache|cast .*once|once", forbidden=r"casts? the same|cast again"),
    "auxiliary_output": Expected(
        "six layers and a sigmoid whose result no backward uses", r"no backward|never used|nothing uses|without a backward",
        remedy="leave the call out", fix=r"no_grad|leave|remove|do not compute", forbidden=r"no backward|nothing uses"),
    "average_by_deepcopy": Expected(
        "loops over the parameters: clones and averages, one by one", r"loop of \d+.*(mul_|add_|clone|copy_)",
        remedy="torch._foreach_lerp_, no copy", fix=r"foreach|one call|batch all", forbidden=r"clone"),
    "checkpoint_each_step": Expected(
        "Python of torch.save (or code after the optimizer) in each step", r"save|code (between|after)",
        remedy="save every n steps, in a thread", fix=r"every n|less often|save", forbidden=r"torch\.save"),
    "collected_each_step": Expected(
        "gc.collect: code without events", r"gc|collect|code (between|after)", remedy="gc.freeze(), collect rarely",
        fix=r"gc|stack", forbidden=r"gc\.collect"),
    "compressing_thread": Expected(
        "another thread holds the interpreter's lock", r"thread|lock|GIL", remedy="a process instead of the thread",
        fix=r"process|thread", forbidden=r"another thread|lock"),
    "confusion_in_python": Expected(
        "a loop of 512 rounds of select, index and add", r"loop of 51\d", remedy="bincount over all",
        fix=r"batch all rounds|bincount|one call", forbidden=r"loop of 51\d"),
    "contiguous_everywhere": Expected(
        "12 layout copies a step, there and back", r"contiguous|layout|transpos|clone|copies", remedy="stay in one layout",
        fix=r"one layout|channels_last|keep|without .*cop", forbidden=r"there and back|back and forth"),
    "dropout_at_inference": Expected(
        "dropout and batch norm in train mode without a backward", r"dropout|train mode", remedy="model.eval()",
        fix=r"eval\(\)", forbidden=r"eval\(\)|train mode"),
    "evaluation_with_grad": Expected(
        "four forward passes with gradients on, no backward follows", r"no backward|without a backward|gradients on",
        remedy="torch.no_grad or inference_mode", fix=r"no_grad|inference_mode", forbidden=r"no backward|without a backward"),
    "frozen_layers_in_optimizer": Expected(
        "gradients of 16 parameters that the optimizer does not update", r"(gradient|parameter)s?.*optimizer",
        remedy="requires_grad_(False)", fix=r"requires_grad", forbidden=r"requires_grad"),
    "generation_without_cache": Expected(
        "a loop of 16 rounds whose length grows", r"loop of 16|grows", remedy="a KV cache: run the new token alone",
        fix=r"cache|new (token|position|row)", forbidden=r"grow"),
    "greedy_in_python": Expected(
        "32 waits of item a round, 8 rounds", r"item|loop of (32|256)", remedy="keep it on the GPU: index with the tensor",
        fix=r"keep .*GPU|tolist|one call|batch all", forbidden=r"aten::item"),
    "head_over_all_positions": Expected(
        "the head's product: all positions, of which one a row is used", r"select|slice|one of|few|used",
        remedy="select before the head", fix=r"before the|select", forbidden=r"are used"),
    "losses_added_by_sum": Expected(
        "a loop of 48 small losses, forward and backward", r"loop of 4\d", remedy="one loss over all columns",
        fix=r"batch all rounds|one call|stack", forbidden=r"loop of 4\d"),
    "mask_of_minus_infinity": Expected(
        "attention with a mask that is as large as the scores", r"mask", remedy="is_causal=True", fix=r"is_causal", forbidden=r"mask"),
    "micro_batches_of_four": Expected(
        "a loop of 16 rounds of forward and backward", r"loop of (15|16)|micro", remedy="larger micro batches",
        fix=r"larger|batch", forbidden=r"loop of (15|16)"),
    "norm_of_each_gradient": Expected(
        "a loop of 50 rounds over the gradients, each read by Python", r"loop of (49|50).*(norm|is_nonzero|item)|is_nonzero",
        remedy="clip_grad_norm_ with foreach, no condition", fix=r"foreach|clip_grad_norm|where|keep .*GPU|batch all", forbidden=r"is_nonzero"),
    "norm_upcast": Expected(
        "casts to float32 and back around each norm", r"cast|_to_copy|aten::to", remedy="keep the norm's weights in bf16",
        fix=r"bf16|type|cast", forbidden=r"cast"),
    "numpy_in_between": Expected(
        "round trips through NumPy: copies to the CPU and back", r"round trip|NumPy|code|copies|aten::to|aten::copy_",
        remedy="stay in torch, on the GPU", fix=r"GPU|torch", forbidden=r"round trip"),
    "padding_to_the_longest": Expected(
        "a loop of 24 rounds of interpolate", r"loop of 2\d.*(interpolate|upsample)", remedy="resize on the CPU workers or by one call",
        fix=r"batch all|one call|group|bucket", forbidden=r"loop of 2\d"),
    "positions_made_each_layer": Expected(
        "arange, exp, sin, cos in each of 12 layers from constants", r"(sin|cos|arange|exp).*|loop of 12", remedy="make the table once",
        fix=r"once|keep", forbidden=r"made again|from constants"),
    "schedule_of_tensors": Expected(
        "a loop of 60 rounds of tiny CPU operators, cos and clamp", r"loop of (59|60)", remedy="math.cos: plain Python numbers",
        fix=r"Python|math|batch all|one call", forbidden=r"loop of (59|60)"),
    "second_backward_for_penalty": Expected(
        "a second backward pass through the graph", r"backward", remedy="take the penalty every n steps", fix=r"every n|once",
        forbidden=r"twice|second backward"),
    "sentences_of_all_lengths": Expected(
        "a loop of 40 rounds of changing shapes", r"loop of (39|40)", remedy="pad and mask, bucket, one call",
        fix=r"pad|bucket|batch", forbidden=r"loop of (39|40)"),
    "solves_one_by_one": Expected(
        "a loop of 64 solves", r"loop of 6\d.*solve", remedy="one batched solve", fix=r"[Ss]tack|batch|one call", forbidden=r"loop of 6\d"),
    "sum_down_the_columns": Expected(
        "softmax over a strided axis: bandwidth far below the memory's", r"softmax|cumsum|stride", remedy="store the table the other way",
        fix=r"contiguous|layout|stride|transpos", forbidden=r"stride"),
    "teacher_and_student_twice": Expected(
        "the same sequence of operators with the same shapes twice a step", r"twice|2 times|again",
        remedy="use the first result", fix=r"once|reuse|first result|one call", forbidden=r"twice|again"),
    "tensors_in_the_log": Expected(
        "a loop of 26 rounds of mean, std, abs, max, item", r"loop of (25|26)", remedy="do not format when the level is off",
        fix=r"log|less often|every n|batch all|remove", forbidden=r"loop of (25|26)"),
    "tokens_one_hot": Expected(
        "one_hot and a product with it", r"one_hot", remedy="F.embedding", fix=r"embedding", forbidden=r"one_hot"),
    "weights_cast_each_call": Expected(
        "the same weights are cast in each micro batch", r"cast|aten::to|_to_copy", remedy="cast once",
        fix=r"once|cast the model|model\.to", forbidden=r"casts? the same|cast again"),
}
BLIND = frozenset(sorted(EXPECTED)[1::3])
