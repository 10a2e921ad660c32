"""What `lanescope explain` should say of each program, written down before the programs ran and before any text was read.

Of a pair: the cause, the place, the remedy that an expert would give, how much of the bad step goes with it, and what would be
false of the good twin. Of a trap: what would be false. The patterns find words; a reader decides.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected, trap  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    "ddp_broadcasts_buffers": Expected(
        "before each forward pass DDP sends all buffers of the batch norms: a cat, a broadcast, and a small copy_ a buffer",
        r"broadcast", "DistributedDataParallel.forward", r"DistributedDataParallel|broadcast",
        "broadcast_buffers=False, or SyncBatchNorm", r"broadcast_buffers", "a tenth to a quarter: launches", r"broadcast_buffers"),
    "metrics_gathered_as_objects": Expected(
        "all_gather_object pickles, copies to the GPU, gathers sizes, waits for the largest, gathers bytes, copies back",
        r"object|pickl|all_?gather", "dist.all_gather_object in step", r"all_?gather|object|step",
        "one tensor and one all_reduce, or every n steps", r"tensor|all_reduce|every n|less often", "a quarter to a half: waits",
        r"all_?gather|object"),
    "optimizer_built_each_step": Expected(
        "a new AdamW each step: it fills the states of all parameters with zeros again (zeros_like, 2 a parameter)",
        r"zeros_like|state", "AdamW(...) and Optimizer.step", r"Optimizer.step|zeros_like", "build the optimizer once",
        r"once|outside", "a quarter: launches and Python", r"zeros_like|again"),
    "adjacency_coalesced_each_layer": Expected(
        "the sparse adjacency matrix is made and coalesced (sorted) again in each of 6 layers, with the same result",
        r"coalesc", "Layer.forward", r"coalesc|sparse", "build and coalesce it once; CSR", r"once|CSR|csr|coalesce", "half or more",
        r"coalesc"),
    "ragged_repeat_waits": Expected(
        "repeat_interleave with a tensor of counts waits for their sum, 8 a step", r"repeat_interleave.*(wait|size)|wait.*repeat_interleave",
        "Layer.forward", r"repeat_interleave", "output_size=", r"output_size", "a tenth to a third: waits", r"output_size|expand\(\)"),
    "replay_of_separate_tensors": Expected(
        "a batch is stacked out of 512 x 4 tensors of one transition each: Python, unsqueeze and cat", r"stack|cat",
        "Replay.sample", r"stack|cat|loop", "keep the replay buffer as one tensor a field and index it once",
        r"one tensor|index|preallocat|one call", "half or more: host", r"aten::stack"),
    "loader_over_gpu_tensors": Expected(
        "DataLoader takes 512 rows one by one from tensors that are on the GPU already, and stacks them", r"DataLoader|select",
        "next(batches) in step", r"DataLoader|select|stack", "index the tensors with a batch of indices (BatchSampler); not more workers",
        r"index|BatchSampler|batch(_| )size=None|whole batch|rows at once", "half or more: host", r"DataLoader"),
    "convolution_by_unfold": Expected(
        "unfold (im2col) writes 9 copies of the picture, a product reads them; so does its backward pass (col2im)", r"im2col|unfold",
        "UnfoldConvolution.forward", r"im2col|unfold|col2im|Im2Col", "F.conv2d", r"conv2d|convolution", "half or more", r"im2col|unfold"),
    "sparse_gradients": Expected(
        "sparse=True for a small table: its gradient is coalesced (sorted, made unique, with waits) in SparseAdam", r"coalesc|sparse",
        "Optimizer.step#SparseAdam", r"Optimizer.step|coalesc|sparse", "sparse=False and a dense fused Adam", r"sparse=False|dense",
        "a third or more", r"sparse=False|coalesc"),
    "create_graph_left_on": Expected(
        "backward(create_graph=True) records a graph of the backward pass and clones each gradient", r"create_graph|AccumulateGrad.*clone|clone",
        "loss.backward in step", r"AccumulateGrad|clone|backward", "leave create_graph out", r"create_graph", "a tenth to a third",
        r"create_graph"),
    "similarity_of_all_pairs": Expected(
        "cosine_similarity of all pairs writes out N x N x D: memory-bound elementwise kernels, forward and backward",
        r"cosine_similarity", "F.cosine_similarity in step", r"cosine_similarity|aten::(mul|div|sum)",
        "normalize both, then one product", r"normali[sz]e|matrix product|matmul|mm", "nine tenths", r"cosine_similarity|broadcast"),
    "lstm_weights_scattered": Expected(
        "the LSTM's weights are not one block, so each call copies them into one first (GPU only)", r"flatten|weights? .*(cop|block|chunk)",
        "self.lstm(x) in step", r"cudnn_rnn|lstm", "flatten_parameters()", r"flatten_parameters", "a fifth", r"flatten_parameters"),
    "polling_for_a_batch": Expected(
        "the loop asks every 10 ms whether the next batch is there: time.sleep", r"sleep", "time.sleep in step", r"sleep|step",
        "wait for it (queue.get, future.result), prepare more ahead", r"queue|result|wait for|thread|ahead|sleep", "a third or more",
        r"sleep"),
    "chunks_never_detached": Expected(
        "the backward pass of each chunk walks back through all chunks before it (retain_graph), so the n-th costs n times the first",
        r"backward.*(grow|more|longer|again)|retain_graph|grow", "loss.backward(retain_graph=True) in step", r"backward",
        "detach the state between chunks", r"detach", "three quarters", r"detach|retain_graph"),
    "batchnorm_left_at_inference": Expected(
        "16 batch norms run as kernels of their own at inference, though each could be part of the convolution before it",
        r"batch_?norm", "the blocks' BatchNorm2d", r"batch_?norm", "fold them into the convolutions (fuse_conv_bn_eval), or compile",
        r"fold|fuse|compile", "a tenth to a third", r"batch_?norm.*(fold|fuse)"),
    "weights_offloaded_each_round": Expected(
        "each block's weights are copied to the GPU and back in each round, from pageable memory, with waits (GPU only)",
        r"cop(y|ies)|Memcpy", "block.to(device) and block.to('cpu') in denoise", r"aten::(to|_to_copy|copy_)|denoise",
        "keep the weights on the GPU, or copy ahead from pinned memory", r"keep .*GPU|stay|on the GPU|pinned|pin_memory", "nine tenths",
        r"pageable|round trip"),
    "debug_backend_left": Expected(
        "torch.compile with backend aot_eager: compiled regions that launch one ATen kernel an operator; chains of elementwise kernels",
        r"compiled|chain|elementwise", "block in step", r"compiled|Compiled|aten::|chain", "backend='inductor' (the default)",
        r"inductor|backend", "half or more", r"aot_eager|backend"),
    "query_key_value_apart": Expected(
        "q, k and v are three small products of one input, and gate and up two more, in 12 layers: launches", r"linear|product|mm",
        "Layer.forward", r"linear|mm|loop", "one linear layer with the weights side by side", r"one (call|product|linear|layer)|concat|stack|side by side",
        "a fifth", r"one (product|linear)"),
    "one_layer_used_six_times": trap("the layers share weights on purpose (ALBERT); each has another input",
                                     r"same forward|use (its|the first) result|run(s)? again|a second time|twice"),
    "two_views_by_dropout": trap("the same input passes twice, so that dropout gives two views (SimCSE)",
                                 r"use (its|the first) result|same result|only once"),
    "numbers_read_on_the_cpu": trap("item() of CPU tensors waits for nothing", r"host-sync|keep the value|\bwaits? .*item|\.item\(\)"),
    "four_large_micro_batches": trap("each micro batch fills the GPU by itself", r"launch-bound|CPU-bound|larger batch|CUDA graph"),
}
