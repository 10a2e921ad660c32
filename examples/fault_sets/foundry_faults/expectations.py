"""What `lanescope explain` should say of each program, written down before the programs ran on a GPU and before any text was read.

Of a pair: the cause, the line, the remedy that an expert would give, how much of the bad step goes with it, and what would be false of
the good twin. `mechanism` begins with the kind and names the number that shows it. Then what a reader accepts as told and as
partly told, separately for the cause, the fix, and the owner with the mechanism (`told` and `partly`, one part after the other).
Of a trap: what would be false. The patterns find words; a reader decides.
"""

from __future__ import annotations

import os
import sys
from typing import Dict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))
from expected import Expected, trap  # noqa: E402

EXPECTED: Dict[str, Expected] = {
    # science.py
    "trace_of_a_whole_product": Expected(
        "GPU work: a product of two matrices of 4096 x 4096 (137 GFLOP in float32) is made, of which only the 4096 numbers of the diagonal "
        "are read",
        cause=r"matmul|aten::mm|product|trace|diagonal|GEMM", place="torch.trace(one @ two)", owner=r"alignment|matmul|aten::mm|step|GEMM",
        remedy="(one * two.t()).sum(): the trace of a product without the product",
        fix=r"without the product|elementwise|diagonal|einsum|sum of|only what|TF32|bfloat16", gain="a third to two thirds",
        forbidden=r"alignment.*(product|matmul)",
        told="cause: the product in range alignment holds so much and only its diagonal (trace) is read. fix: multiply elementwise "
             "and sum. "
             "owner: range alignment, matmul at its line; GPU work bound by arithmetic",
        partly="cause: matrix products hold the step, without the diagonal. fix: TF32 or bfloat16. owner: kernel names, or all products"),
    "particles_stored_as_rows": Expected(
        "GPU work bound by memory: a field is one column of a table with rows of 16 floats, so each elementwise kernel moves whole sectors "
        "of 32 bytes for each 4 (eight times the bytes that it needs)",
        cause=r"strid|column|not contiguous|contiguous|sector|scattered|coalesc|row", place="return self.table[:, number]",
        owner=r"step|kick|drift|energy|aten::(addcdiv_|add_|mul_|mul|dot|lt|gt)",
        remedy="one contiguous tensor a field (a table of columns)",
        fix=r"contiguous|layout|transpos|column|field|each field|separate|order", gain="most",
        forbidden=r"strided|scattered",
        told="cause: strided reads and writes make elementwise kernels slow. fix: contiguous fields, another layout. owner: ranges kick, "
             "drift, energy, or their lines; GPU work bound by memory",
        partly="cause: elementwise kernels hold the step, or use little of the bandwidth, without the strides. fix: fuse, compile. "
               "owner: kernel names"),
    "adjacency_transposed_anew": Expected(
        "GPU work: a sparse matrix of four million edges, which never changes, is transposed to CSR in each of three layers (conversions "
        "and sorts of indices), besides the products that are needed",
        cause=r"to_sparse_csr|_to_sparse|transpos|sort|convert|conversion|sparse", place="self.adjacency.t().to_sparse_csr()",
        owner=r"Convolution|forward|to_sparse|sort|graph",
        remedy="transpose once, when the graph is loaded, and keep both",
        fix=r"once|keep|cache|before|outside|ahead|reuse|in advance", gain="a third or more",
        forbidden=r"to_sparse|transpos|convert",
        told="cause: the conversion to CSR (sorting) of the same matrix in each layer. fix: once, ahead. owner: to_sparse_csr or its line, "
             "Convolution.forward; GPU work",
        partly="cause: sorts or sparse kernels hold the step, without that it is the same each time. fix: general. owner: kernel names"),
    "one_weight_multiplied_row_by_row": Expected(
        "GPU work: bmm multiplies 2048 matrices of one row by one and the same weight of 512 x 512, which each of them reads anew; "
        "one product of 2048 x 512 by 512 x 512 would do",
        cause=r"bmm|batch|one row|same (weight|matrix)|expand|shared|row by row|\[2048, 1, 512\]",
        place="torch.bmm(x.unsqueeze(1), weights)", owner=r"Mixer|bmm|mix", remedy="x @ self.weight: one matrix product",
        fix=r"one (matrix )?product|matmul|mm\b|linear|join|fold|single|larger", gain="most", forbidden=r"aten::bmm",
        told="cause: bmm of single rows, or with an expanded weight. fix: one product of all rows. owner: Mixer.forward, aten::bmm or its "
             "line; GPU work",
        partly="cause: bmm holds the step, without its form. fix: larger products in general. owner: kernel names"),
    # serving.py
    "prompt_read_in_tiny_chunks": Expected(
        "launch overhead: the prompt runs through eight blocks in 16 chunks of 32 tokens, some 2500 launches of small kernels where 160 "
        "would do",
        cause=r"launch|16 (rounds|times|x)|loop|chunk|small|tiny|prefill", place="for begin in range(0, prompt, chunk)",
        owner=r"prefill|Block|step|launch",
        remedy="larger chunks, or the whole prompt at once", fix=r"larger|fewer|at once|whole|one call|batch|together|join",
        gain="most", forbidden=r"16 (rounds|times|x)",
        told="cause: a loop of 16 rounds of the same layers on few rows; launches hold the step. fix: larger chunks (fewer rounds). "
             "owner: range prefill, the loop or Block.forward; launch overhead",
        partly="cause: launch-bound, without the loop. fix: a CUDA graph or compile. owner: kernel or operator names"),
    "cache_unpacked_whole_each_token": Expected(
        "GPU work bound by memory: for each token each of four layers turns its whole cache from int8 to bfloat16 and multiplies it by "
        "scales (1.9 GB moved), and only then reads it (0.5 GB)",
        cause=r"aten::(mul|to|copy_|_to_copy)|int8|cast|convert|scale|dequant|unpack|memory",
        place="kept[number].to(half(s.device)) * scales[number]",
        owner=r"cache|keys_and_values|aten::(mul|to|copy_|_to_copy)",
        remedy="attention that reads int8 and applies scales itself; or keep bfloat16; or at least one pass (compile)",
        fix=r"once|keep|fus|compile|in one|kernel|int8|half|avoid|without", gain="two thirds or more",
        forbidden=r"(cast|convert|mul).*cache",
        told="cause: cast and multiplication of the whole cache (range cache / keys_and_values) hold so much. fix: keep it "
             "unpacked, unpack "
             "new tokens only, or fuse. owner: range cache, keys_and_values or its line; GPU work bound by memory",
        partly="cause: elementwise kernels hold so much, without what. fix: general. owner: kernel names"),
    "trunk_run_for_each_dropout_sample": Expected(
        "GPU work: the trunk, which has no dropout, runs eight times on the same pictures; only the head differs between the samples",
        cause=r"8 (times|rounds|x)|same (input|layers|module)|again|repeat|trunk|tower|linear|matmul|addmm",
        place="model(pictures) for _ in range(samples)", owner=r"evaluate|trunk|Uncertain|Sequential|linear|addmm",
        remedy="run the trunk once and the head eight times", fix=r"once|reuse|keep|first result|trunk|outside|share",
        gain="most", forbidden=r"(trunk|layers).*(8 times|again)",
        told="cause: the same layers run eight times on the same input. fix: once, and reuse the result. owner: range evaluate, "
             "Uncertain.trunk or its line; GPU work (arithmetic)",
        partly="cause: linear layers hold the step, without that they repeat. fix: fewer bits, one larger batch. owner: kernel names"),
    "compiled_anew_in_the_step": Expected(
        "host code: each step calls torch.compile and enters the compiled function for the first time (Dynamo looks up and checks anew), "
        "while the GPU idles",
        cause=r"torch\.compile|dynamo|compil|convert_frame|Python|idle|host", place="return s.compile(loss)",
        owner=r"loss_for|compile|dynamo|loss|step", remedy="make and compile the function once, before the loop; pass the smoothing "
              "as an argument",
        fix=r"once|before|outside|keep|reuse|ahead", gain="a half or more",
        forbidden=r"compil.*(again|anew|each step)",
        told="cause: torch.compile is called in each step, or Dynamo's work holds it. fix: compile once, before the loop. owner: loss_for, "
             "torch.compile or its line; host code",
        partly="cause: Python or host code holds the step while the GPU idles, with its place. fix: overlap in general. owner: range loss"),
    "memory_pool_made_for_each_step": Expected(
        "allocation: each step makes a new MemPool, so all its memory comes from cudaMalloc and goes by cudaFree, which waits for the GPU",
        cause=r"cudaMalloc|cudaFree|alloc|MemPool|pool", place="torch.cuda.use_mem_pool(... torch.cuda.MemPool())",
        owner=r"cudaMalloc|cudaFree|request|apart|MemPool|alloc",
        remedy="keep one pool", fix=r"keep|reuse|one pool|once|caching|preallocat|same", gain="a quarter or more",
        forbidden=r"cudaMalloc|cudaFree",
        told="cause: cudaMalloc and cudaFree in each step. fix: keep the memory or the pool. owner: cudaMalloc/cudaFree, range "
             "request or its "
             "line; allocation",
        partly="cause: the GPU waits for the CPU or a synchronisation, without why. fix: general. owner: range only"),
    # training.py
    "gradients_stacked_to_be_averaged": Expected(
        "memory: gradients of four micro batches are cloned (168 MB each), stacked and averaged for each parameter, though .grad would add "
        "them up by itself",
        cause=r"clone|stack|aten::cat|mean|cop(y|ies)|average|memory", place="torch.stack(gradients).mean(dim=0)",
        owner=r"collected|average|clone|stack|aten::(cat|copy_|mean)",
        remedy="divide the loss by four and let backward add to .grad", fix=r"accumulat|add|\.grad|without|avoid|in place|fewer|sum",
        gain="a sixth to a third", forbidden=r"(stack|clone|cat).*gradient",
        told="cause: clones and stacks of gradients (collected, range average) hold so much. fix: accumulate in .grad. owner: collected, "
             "range average or its lines; copies on the GPU",
        partly="cause: copies or elementwise kernels, without place. fix: avoid copies in general. owner: kernel names"),
    "coin_tossed_on_the_gpu": Expected(
        "waiting: each of 32 layers asks the GPU for a random number and waits for it (32 copies of a byte and waits a step), so launches "
        "never get ahead of the GPU in the forward pass",
        cause=r"item|is_nonzero|_local_scalar_dense|wait|synchroni|bool|32", place="if torch.rand((), device=toss_on) < 0.8",
        owner=r"is_nonzero|item|_local_scalar_dense|cudaStreamSynchronize|forward|rand",
        remedy="toss on the CPU (random.random()), or all coins at once",
        fix=r"on the CPU|at once|one transfer|once|random|before the loop|without|avoid|keep", gain="a tenth to a third",
        forbidden=r"(is_nonzero|item).*wait",
        told="cause: the comparison of a GPU number in Python, in each layer, waits. fix: make the numbers on the CPU, or read all in one. "
             "owner: aten::is_nonzero / item at its line; waits",
        partly="cause: waits without place, or launch-bound. fix: fewer waits in general. owner: cudaStreamSynchronize"),
    "picked_after_convolution": Expected(
        "GPU work: each of four convolutions computes all pixels, of which a slice keeps a quarter; backward does the same, and fills "
        "gradients with zeros",
        cause=r"conv|slice|quarter|thrown|unused|strid", place="x[:, :, ::2, ::2]",
        owner=r"Down|conv|aten::(slice|convolution|cudnn)",
        remedy="a convolution with stride=2", fix=r"stride|fewer|smaller|only|pick|before|skip|slice", gain="a half or more",
        forbidden=r"slice.*(thrown|unused|quarter)",
        told="cause: convolutions compute four times what is kept (a slice). fix: stride 2, or pick first. owner: Down.forward, "
             "conv2d or its "
             "line; GPU work",
        partly="cause: convolutions hold the step, without what is kept. fix: general (layout, bits). owner: kernel names"),
    "states_offloaded_in_the_way": Expected(
        "copying: 64 MB of states go to pinned memory on the stream of the computation, and the next step's kernels wait for the copy "
        "(1.2 ms of 3.5)",
        cause=r"DtoH|copy|transfer|overlap|same stream|serial", place="buffers[number].copy_(states, non_blocking=True)",
        owner=r"Memcpy DtoH|aten::copy_|send|offload",
        remedy="copy on a second stream, which waits for the states only", fix=r"stream|overlap|behind|while|async",
        gain="a quarter to two fifths",
        forbidden=r"(copy|DtoH).*not overlap",
        told="cause: the copy to the CPU runs on the stream of the computation and nothing runs beside it. fix: a stream of its own. "
             "owner: Memcpy DtoH / aten::copy_ in send or its line; copying",
        partly="cause: copies hold so much. fix: fewer bytes, pinned memory. owner: copies without place"),
    "batch_sent_to_the_gpu_twice": Expected(
        "copying: teacher and pupil each send the same batch of 57 MB to the GPU, once a forward",
        cause=r"HtoD|twice|2 (times|x|copies)|same (data|batch|tensor|bytes)|copy", place="x = pictures.to(self.device, non_blocking=True)",
        owner=r"Memcpy HtoD|aten::(to|copy_|_to_copy)|Network|forward",
        remedy="send it once and hand both the tensor on the GPU", fix=r"once|reuse|share|keep|second stream|ahead|overlap", gain="a third",
        forbidden=r"(same|twice).*(cop|sent)",
        told="cause: the same data is sent twice in a step. fix: once. owner: HtoD copies in Network.forward or its line; copying",
        partly="cause: copies to the GPU hold so much. fix: overlap or prefetch. owner: copies without place"),
    # data.py
    "archive_read_again_at_each_access": Expected(
        "host code (files): each access to the open .npz reads and decompresses a whole array (2 MB) again, twice a step, while the "
        "GPU idles",
        cause=r"npz|npyio|zip|decompress|read|__getitem__|host|Python|idle|load", place='archive["spectra"][chosen]',
        owner=r"batch|__getitem__|read|npyio|zip|decompress",
        remedy="read the arrays once, before the loop; or .npy with mmap_mode",
        fix=r"once|before|keep|cache|mmap|ahead|process|worker|less",
        gain="most", forbidden=r"(npz|decompress|read).*(hold|idle|ms)",
        told="cause: reading or decompressing in batch / NpzFile.__getitem__ holds the step while the GPU idles. fix: read once and keep. "
             "owner: batch, NpzFile.__getitem__, zlib or its line; host code, files",
        partly="cause: the GPU idles for Python, with range read only. fix: overlap, workers. owner: range read"),
    "means_of_64_bits": Expected(
        "host code: numpy subtracts and divides 1.6 million numbers in float64, because the means are float64, and 12.6 MB go to the GPU "
        "to become 16 bits there",
        cause=r"float64|double|64.bit|numpy|Python|host|HtoD|pageable|prepare", place="(pixels.astype(mean.dtype) - mean) / spread",
        owner=r"prepare|step|numpy|astype|aten::to|HtoD",
        remedy="means of float32; or send the bytes and compute on the GPU",
        fix=r"float32|32.bit|on the GPU|uint8|bytes|ahead|process|smaller",
        gain="a third to a half", forbidden=r"float64",
        told="cause: numpy in float64 in range prepare holds the step (or the copy of float64). fix: float32, or send bytes and "
             "compute on the "
             "GPU. owner: range prepare or its line; host code",
        partly="cause: host code holds the step, without the type. fix: overlap, workers. owner: step without line"),
    "seen_kept_in_a_list": Expected(
        "host code: 512 times a step Python looks for a number in a list of 3000, from its beginning, while the GPU idles",
        cause=r"fresh_ones|Python|host|idle|list|choose", place="if number not in seen", owner=r"fresh_ones|choose|Python",
        remedy="keep the numbers in a set", fix=r"set|dict|hash|cheaper|faster|once|ahead|process|thread|other structure|numpy|vector",
        gain="most", forbidden=r"fresh_ones.*(hold|idle)",
        told="cause: plain Python in fresh_ones holds the step while the GPU idles. fix: cheaper (a set), vectorized, or ahead in another "
             "process. owner: fresh_ones or its line; host code",
        partly="cause: the GPU idles for Python, without place. fix: overlap in general. owner: range choose or the wait of float()"),
    "pool_of_threads_for_tiny_tasks": Expected(
        "host code, threads: 512 futures for tasks of a few microseconds; handing them over and waiting for them (locks, changes of "
        "threads) "
        "costs many times the work, while the GPU idles",
        cause=r"thread|future|pool|lock|wait|submit|acquire|map|result|host|Python", place="pool.map(scaled, records)",
        owner=r"pool|submit|map|result|scale|future|acquire|thread",
        remedy="a loop, or one call of numpy for all rows; or larger tasks",
        fix=r"loop|this thread|larger|fewer|chunk|one call|numpy|together|without",
        gain="a third or more", forbidden=r"(thread|future|lock).*(wait|hold)",
        told="cause: the step hands tasks to threads and waits for them, in pool.map. fix: work in this thread, or larger tasks. owner: "
             "pool.map / submit / result or its line; host code, threads",
        partly="cause: Python holds the step while the GPU idles, without the threads. fix: overlap, ahead. owner: range scale"),
    # traps.py
    "paced_by_a_clock": trap(
        "the step sleeps until its time has come, a hundred times a second; nothing that makes the GPU or launches faster makes it shorter",
        r"(compile|CUDA graph|overlap|launch).*(predicted|up to|of a step)|sleep.*(remove|shorter|ahead|other process)|idle.*(fix|fault)"),
    "gradients_zeroed_for_a_graph": trap(
        "the graph adds to gradients at fixed addresses, so they must be filled with zeros once a step; set_to_none would break it",
        r"set_to_none|zero_grad|zero.*(needless|leave out|avoid|skip)"),
    "slow_copy_hidden_behind_the_step": trap(
        "the pageable copy runs beside the computation, which takes far longer; without it the step would be as long",
        r"(pageable|pin|HtoD).*(predicted|up to|gain)|copy.bound|waits? for .*(copy|batch|thread)"),
}
