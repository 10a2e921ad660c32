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
    # training.py
    "capacity_far_above_need": Expected(
        "GPU work: each expert has 2048 places for its 512 tokens, so three quarters of the rows of its products are zeros (bmm of "
        "[16, 2048, 1024], forward and backward)",
        cause=r"zero|padd|empty|capacity|bmm|rows", place="capacity = int(self.spare * len(x) / experts)",
        owner=r"Experts|bmm|GEMM|matrix product",
        remedy="a capacity near the need (1.25), or a grouped product without padding",
        fix=r"capacity|fewer|smaller|grouped|padd|only", gain="more than half",
        forbidden=r"(zeros|padding|capacity).*(three quarters|7\d %)",
        told="cause: products work on rows of zeros or padding (the capacity is larger than the number of tokens). fix: a smaller "
             "capacity, or "
             "products of the filled rows only. owner: aten::bmm in Experts (or its line); GPU work",
        partly="cause: aten::bmm holds the step, with its shape. fix: smaller shapes. owner: the kernels of products without place"),
    "muon_on_the_long_side": Expected(
        "order of operations: Newton and Schulz's iteration squares matrices of [4096, 1024] to 4096 x 4096 and squares that again, five "
        "times for each of 4 matrices (about ten times the arithmetic of the other side)",
        cause=r"4096|square|long|larger|transpos|order|aten::(mm|matmul)|same product", place="square = x @ x.mT",
        owner=r"muon|orthogonalised|aten::(mm|matmul)|GEMM",
        remedy="transpose tall matrices first, so that the square is 1024 x 1024",
        fix=r"transpos|small(er)? side|short(er)? side|order|1024", gain="four fifths",
        forbidden=r"(transpose|shorter side).*first",
        told="cause: products with the long side (4096 x 4096) that the short side would make smaller. fix: transpose first. owner: "
             "orthogonalised "
             "or range muon, its line; GPU work in aten::mm",
        partly="cause: the products of muon hold the step, without that another order takes less. fix: fewer iterations, lower precision. "
               "owner: aten::mm without place"),
    "gradients_widened_to_be_clipped": Expected(
        "dtype: 200 million gradients of 16 bits are copied to float32 to be clipped, scaled there and copied back (12 of aten::to, mul "
        "and "
        "copy_ over 67 MB each; about 3.6 GB more moved a step)",
        cause=r"float32|cast|aten::_?to|copy_|float\(\)|convert|widen", place="wide = [weight.grad.float() for weight in parameters]",
        owner=r"clip_in_float32|aten::(_?to|_to_copy|copy_|mul)|cast",
        remedy="measure with vector_norm(dtype=float32), scale in place in 16 bits (clip_grad_norm_)",
        fix=r"clip_grad_norm_|dtype=|in.?place|without.*(copy|cast)|keep|foreach|fus|16 bits|bfloat16", gain="a third to a half",
        forbidden=r"(cast|float32).*(clip|gradient)",
        told="cause: gradients are cast to float32 and back to be clipped. fix: clip without the copies. owner: clip_in_float32 (its "
             "lines) or "
             "aten::to/copy_ there; GPU work bound by memory",
        partly="cause: elementwise work on gradients holds so much, without the casts; or casts without place. fix: fuse, foreach. "
               "owner: elementwise or copy kernels"),
    "gradients_scaled_by_hooks": Expected(
        "launch overhead: a Python hook for each of 160 parameters launches norm, clamp, division inside the backward pass (about 500 tiny "
        "kernels, and Python between them)",
        cause=r"hook|launch|tiny|small|Python|CPU-bound|160", place="return gradient / gradient.norm().clamp(min=1.0)",
        owner=r"scale_down|hook|norm|clamp|div|backward",
        remedy="scale all gradients after the backward pass by _foreach_norm and _foreach_div_",
        fix=r"foreach|after the backward|all at once|together|batch|CUDA graph|one call", gain="a third or more",
        forbidden=r"hook|scale_down",
        told="cause: hooks for each parameter launch tiny kernels (launch-bound backward). fix: one foreach call after. owner: "
             "scale_down (its "
             "line) or hooks in backward; launches/CPU",
        partly="cause: launch-bound with tiny kernels. fix: CUDA graph or compile. owner: backward, or aten::linalg_vector_norm"),
    "noise_drawn_per_tensor": Expected(
        "launch overhead: noise is drawn and added for each of 180 parameters (360 tiny kernels a step) while the GPU idles",
        cause=r"loop|launch|tiny|small|CPU-bound|180|times", place="weight.add_(torch.randn_like(weight), alpha=noise)",
        owner=r"add_noise|randn|normal_|add_",
        remedy="draw once for all parameters and add by _foreach_add_", fix=r"foreach|once|one call|together|batch|CUDA graph|flat",
        gain="a quarter to a half", forbidden=r"randn.*(180|loop)|loop.*noise",
        told="cause: a loop over parameters draws and adds (tiny kernels, launch-bound). fix: one draw, foreach. owner: add_noise or "
             "its line; "
             "launches",
        partly="cause: launch-bound with tiny kernels. fix: CUDA graph or compile. owner: the step as a whole"),
    "labels_asserted_in_range": Expected(
        "waiting: an assertion on a tensor of the GPU waits for the whole forward pass (one aten::is_nonzero a step, some ms), so that "
        "Python's work for the next batch comes after it, and the GPU idles then",
        cause=r"is_nonzero|item|_local_scalar_dense|wait|sync|assert", place="assert labels.max() < classes",
        owner=r"hits|is_nonzero|item|_local_scalar_dense|wait|assert",
        remedy="check labels where they are loaded (on the CPU), or by torch._assert_async",
        fix=r"_assert_async|remove|leave out|later|on the CPU|after|debug|before|overlap|once", gain="a third to a half",
        forbidden=r"is_nonzero|assert.*(wait|item)",
        told="cause: a wait for the GPU at the assertion, before host work. fix: leave it out, move it, or check on the CPU. owner: "
             "that line (or "
             "hits with aten::is_nonzero/item); waits for the GPU",
        partly="cause: the GPU idles during names_of_next (Python), or a wait without its line. fix: overlap. owner: names_of_next, item"),
    # serving.py
    "sampling_settings_deep_copied": Expected(
        "host code without events: the settings of 48 requests are copied by copy.deepcopy for each token (milliseconds of Python in "
        "the range "
        "settings while the GPU idles)",
        cause=r"deepcopy|Python|host|idle|copy\.py", place="settings = copy.deepcopy(settings)",
        owner=r"deepcopy|cooled|settings|Python",
        remedy="dataclasses.replace (a shallow copy), or a list of temperatures",
        fix=r"shallow|replace|without|once|leave out|move|vector|another thread|before|overlap|keep", gain="most", forbidden=r"deepcopy",
        told="cause: deepcopy (or Python in cooled/settings) holds the step while the GPU idles. fix: no deep copy. owner: "
             "copy.deepcopy or the "
             "range or line; host code",
        partly="cause: Python without place holds the step. fix: overlap in general. owner: tolist, or the step as a whole"),
    "cache_swapped_out_whole": Expected(
        "copies: the whole cache (268 MB) goes to the CPU and back, for 4 of its 32 requests (so about 5 ms each way)",
        cause=r"Memcpy|cop(y|ies)|HtoD|DtoH|MB|GB", place="outside.copy_(swapped, non_blocking=True)",
        owner=r"swap_(out|in)|Memcpy|copy_|HtoD|DtoH",
        remedy="copy only the requests that leave", fix=r"only|fewer|less|smaller|part|keep.*GPU|stay|avoid|overlap|stream",
        gain="four fifths",
        forbidden=r"268|whole cache",
        told="cause: copies between GPU and CPU of so many bytes hold the step, out and back. fix: copy less (only what leaves), or "
             "keep it on the "
             "GPU. owner: ranges swap_out/swap_in or their lines; copying",
        partly="cause: copies without place or amount. fix: overlap on another stream only. owner: memcpy alone"),
    "every_output_of_graph_cloned": Expected(
        "memory: after each replay of a CUDA graph all of its outputs are cloned, eight caches of 268 MB among them (2.1 GB a step), "
        "and only the "
        "first is used",
        cause=r"clone|cop(y|ies)|Memcpy|DtoD", place="return [output.clone() for output in outputs][0]",
        owner=r"clone|copy_|Memcpy|DtoD", remedy="clone only what is used (the scores)",
        fix=r"only|without|remove|avoid|leave out|unused|fewer|need", gain="half or more", forbidden=r"clone.*(remove|avoid|leave|GB)",
        told="cause: clones of large tensors (so many GB) after the replay. fix: clone only what is needed. owner: aten::clone at its "
             "line; copies "
             "GPU to GPU",
        partly="cause: copies GPU to GPU without the clone. fix: avoid copies. owner: memcpy DtoD"),
    "graph_of_256_for_20": Expected(
        "GPU work: 20 requests are padded to the only captured graph, of 256 rows, whose attention reads 4.3 GB of caches (nine tenths "
        "for rows "
        "of padding)",
        cause=r"padd|zero|256|unused|rows|attention|graph", place="sizes = [...] if good else [s.pick(256, 16)]",
        owner=r"attention|flash|fmha|graph|replay",
        remedy="capture graphs of several sizes and take the smallest that fits",
        fix=r"smaller|sizes|bucket|fewer|several graphs|fit", gain="most", forbidden=r"padd.*(256|rows)",
        told="cause: work of padded rows (20 of 256 are used). fix: a smaller graph. owner: attention kernels in the replayed graph; "
             "GPU work",
        partly="cause: attention in the graph holds the step (bound by memory), without padding. fix: a faster attention. owner: "
             "kernels of the "
               "graph, or the launch of the graph"),
    "nibbles_unpacked_by_slices": Expected(
        "layout: weights of four bits are unpacked by eight assignments to slices of every eighth column (strided writes of 2 bytes, 32 of "
        "aten::copy_ a step, and passes over 32-bit numbers)",
        cause=r"strid|slice|copy_|non-?contiguous|every eighth|elementwise|unpack|uncoalesced|\b8 times|memory",
        place="weight[:, at::8] = ((self.packed >> 4 * at) & 15) - 8",
        owner=r"unpacked|FourBits|copy_|aten::(__rshift__|bitwise|__and__|sub)",
        remedy="shift by broadcasting, with the nibbles as last dimension, or a kernel for four bits; keep what was unpacked",
        fix=r"broadcast|contiguous|one (call|kernel|pass)|fus|compile|kernel|once|keep|last dimension", gain="half or more",
        forbidden=r"strid.*writ|slices? .*(8|eight)",
        told="cause: writes into strided slices (copy_ to every eighth column), or many passes to unpack the same weights. fix: contiguous/"
             "broadcast, fuse, unpack once, or a kernel. owner: unpacked in FourBits, its line; GPU work bound by memory",
        partly="cause: elementwise kernels hold the step. fix: torch.compile in general. owner: copy kernels without place"),
    "left_out_of_compilation": Expected(
        "torch.compile: a norm is excluded by torch.compiler.disable, so each compiled block breaks in two and the norm runs as about 8 "
        "elementwise kernels over 67 MB each",
        cause=r"disable|graph break|compile|eager|unfused|chain|elementwise|fus", place="torch.compiler.disable(soft_norm)",
        owner=r"soft_norm|aten::(tanh|div|mul|square|pow|mean|rsqrt)|elementwise|chain",
        remedy="take torch.compiler.disable away", fix=r"compile|disable|fus|graph break", gain="half or more",
        forbidden=r"disable|graph break|not compiled|elementwise.*(fuse|compile)",
        told="cause: an unfused chain in soft_norm because it is not compiled (or a graph break). fix: compile it too (without "
             "disable). owner: "
             "soft_norm or its elementwise operations/lines; GPU work bound by memory",
        partly="cause: elementwise kernels hold the step. fix: lower precision. owner: kernels without place"),
    # signals.py
    "overlaps_between_pictures": Expected(
        "GPU work: boxes of all pictures are matched with the targets of all pictures (32,000 x 1600, about ten passes over 200 to 400 "
        "MB), of "
        "which 31 of 32 parts are masked to zero",
        cause=r"mask|zero|pictures|32,?000|broadcast|elementwise|memory|large|thrown",
        place="shared = overlaps(boxes.flatten(0, 1), truth.flatten(0, 1))",
        owner=r"overlaps|match|aten::(maximum|minimum|prod|clamp|sub|mul|div)|elementwise",
        remedy="match within each picture (a batch dimension)", fix=r"within|per picture|batch|only|fewer|smaller|before|fus|compile",
        gain="most",
        forbidden=r"(all|other) pictures|32,?000",
        told="cause: pairs that are masked away (work over a product of all boxes and targets). fix: batch by picture. owner: overlaps "
             "or range "
             "match or its line; GPU work in elementwise kernels",
        partly="cause: elementwise chain over large tensors in overlaps. fix: fuse/compile. owner: aten ops without place"),
    "previews_decoded_for_nobody": Expected(
        "GPU work: a decoder makes a picture of 512 x 512 after each of 4 steps of denoising, three of which are replaced before "
        "anybody looks",
        cause=r"preview|decod|unused|4 (times|calls)|conv|again|replaced", place='shown["picture"] = decoder(latents).clamp(-1, 1)',
        owner=r"preview|show|decoder|conv|upsampl", remedy="decode the last only (or when somebody looks)",
        fix=r"only|once|last|after the loop|fewer|less often|leave out|unused", gain="a third to a half",
        forbidden=r"(preview|decod).*(unused|overwritten|4 times)",
        told="cause: the preview (decoder) runs four times a step, and its results are not used (or: it is so much of the step). fix: "
             "decode less "
             "often. owner: range preview / show / its line; GPU work in convolutions",
        partly="cause: convolutions hold the step. fix: faster convolutions. owner: conv kernels without place"),
    "spectrogram_made_for_each_loss": Expected(
        "GPU work: three losses make the same two spectrograms each for itself (6 aten::stft a step instead of 2, forward and backward)",
        cause=r"same|again|3 times|6 (times|calls)|three|stft|fft",
        place="loss = sum(loss(spectrogram(made), spectrogram(wanted)) for loss in losses)",
        owner=r"spectrogram|stft|fft|aten::abs", remedy="make both spectrograms once and give them to all losses",
        fix=r"once|reuse|share|keep|cache|before", gain="half", forbidden=r"(same|equal).*(again|times)|stft.*again",
        told="cause: the same spectrogram (stft of the same input) is made several times. fix: once. owner: spectrogram or aten::stft "
             "or its line; "
             "GPU work",
        partly="cause: stft/fft hold the step, without repetition. fix: a cheaper transform. owner: fft kernels"),
    "moving_average_by_unfold": Expected(
        "GPU work: averages over 256 measurements are taken of each of 3841 windows, so each number is read 256 times (aten::mean of "
        "[2048, 3841, 256], twice)",
        cause=r"unfold|window|mean|256|overlap|reduc|again", place="return x.unfold(1, window, 1).mean(dim=-1)",
        owner=r"averaged|moving|aten::mean|reduce", remedy="differences of a running sum (cumsum), or avg_pool1d",
        fix=r"cumsum|running|cumulative|pool|conv|incremental|prefix|fewer", gain="half or more",
        forbidden=r"unfold|aten::mean.*(window|256)",
        told="cause: each number is read again for each window (mean of unfold). fix: a running sum. owner: aten::mean at averaged, its "
             "line; GPU "
             "work",
        partly="cause: aten::mean (reduction, its shape) holds the step. fix: none needed. owner: reduce kernels without place"),
    "voxel_keys_of_64_bits": Expected(
        "dtype: eight million keys below 2^30 are sorted as int64 (radix sort makes twice as many passes over twice the bytes)",
        cause=r"int64|64.?bit|long|sort", place="x, y, z = places if good else places.long()", owner=r"sort|radix",
        remedy="keys of int32", fix=r"int32|32.?bit|narrow|smaller (type|dtype)", gain="a third to a half", forbidden=r"int64|64.bit",
        told="cause: the sort works on int64 although int32 would do. fix: int32. owner: aten::sort at its line; GPU work",
        partly="cause: the sort holds the step, without its dtype. fix: topk, unique or other ways around the sort. owner: radix sort "
             "kernels"),
    # science.py
    "factors_made_again_in_backward": Expected(
        "GPU work: a custom function factors 512 matrices in its forward pass, and again in its backward pass (2 LU factorizations a step)",
        cause=r"again|twice|2 (times|calls)|backward|solve|lu_factor|LU", place="of_right, _ = torch.linalg.solve_ex(matrix.mT, gradient)",
        owner=r"Solve|linalg_(solve|lu)|getrf|lu_|backward", remedy="keep the factors for the backward pass (lu_solve with adjoint=True)",
        fix=r"keep|save|reuse|lu_solve|once|adjoint", gain="a third to a half", forbidden=r"(factor|LU).*(again|twice)",
        told="cause: the backward pass factors the same matrices again. fix: save the factors. owner: SolveBackward / "
             "aten::linalg_solve_ex (its line); "
             "GPU work (or launches of a batched factorization)",
        partly="cause: linalg solve or lu hold the step. fix: other solvers. owner: kernels without place"),
    "filters_leave_the_spectrum": Expected(
        "order of operations: each of 6 filters transforms the field to the spectrum and back (12 transforms of 64 x 512 x 512 a step), "
        "although "
        "the next filter begins with a transform again",
        cause=r"fft|transform|back and forth|inverse|6 times|undo", place="now = torch.fft.irfft2(torch.fft.rfft2(now) * part, s=...)",
        owner=r"filters|fft|cufft", remedy="stay in the spectrum for all filters (or multiply the filters together)",
        fix=r"once|stay|spectrum|combine|together|fewer|keep", gain="half or more", forbidden=r"fft.*(back and forth|6 times|undone)",
        told="cause: transforms there and back between filters. fix: one transform each way. owner: aten::fft_rfft2/irfft2 at its line "
             "or range "
             "filters; GPU work",
        partly="cause: transforms hold the step. fix: a faster transform. owner: fft kernels"),
    "all_items_scored_for_few": Expected(
        "GPU work: 2048 users are scored against all 500,000 items (a product and 2 GB of scores), of which 64 each are read by gather",
        cause=r"gather|thrown|unused|500,?000|few|aten::(mm|matmul)|GB|large", place="scores = (tastes @ of_items.T).gather(1, found)",
        owner=r"rank|aten::(mm|matmul)|GEMM", remedy="take the rows of the 64 items first, then multiply (bmm)",
        fix=r"first|only|gather.*before|before|bmm|select|fewer|index", gain="most", forbidden=r"500,?000|gather.*(few|thrown|unused)",
        told="cause: a product whose results are mostly not read (64 of 500,000). fix: choose items first. owner: aten::mm at its line "
             "or range rank; "
             "GPU work",
        partly="cause: the product holds the step (with its shape). fix: lower precision. owner: product kernels"),
    "sum_tree_walked_in_python": Expected(
        "host code without events: Python walks a tree of priorities 512 times down and 512 times up, 16 levels each (milliseconds in "
        "ranges "
        "sample and priorities, in which the GPU idles)",
        cause=r"Python|host|idle|find|walk|CPU", place="while node < self.leaves: (find), while node: (update)",
        owner=r"sample|priorities|find|SumTree|update|Python", remedy="walk level by level with NumPy, for all at once (or on the GPU)",
        fix=r"numpy|vector|at once|on the GPU|batch|another (thread|process)|overlap|native|compiled", gain="half or more",
        forbidden=r"(find|SumTree|priorities).*(hold|Python)",
        told="cause: Python in sample (SumTree.find) or priorities (SumTree.update) holds the step while the GPU idles. fix: vectorise "
             "or move off "
             "the step. owner: range, function or line; host code",
        partly="cause: the GPU idles for Python without place; only one wait (cpu()). fix: overlap. owner: the copy or the step"),
    # data.py
    "recording_read_whole_for_a_second": Expected(
        "data loading: each of 12 samples reads a file of 4 MB whole to take 32 KB of it (milliseconds of host time in range samples; the "
        "GPU idles)",
        cause=r"np\.load|numpy|file|read|host|Python|idle|load", place="recording = np.load(path)",
        owner=r"cut|samples|np\.load|load|fromfile|read|npyio|format",
        remedy="memory-map the files (mmap_mode='r') or read only the part; prefetch in a worker",
        fix=r"mmap|map|only|part|keep|cache|worker|prefetch|DataLoader|overlap|thread|once", gain="half or more",
        forbidden=r"(np\.load|read).*(hold|file)",
        told="cause: reading files (np.load) in the step, or Python in samples/cut, while the GPU idles. fix: read less (mmap) or keep, "
             "or load "
             "in workers. owner: np.load / cut / range samples or line; host code, data loading",
        partly="cause: the GPU idles for the CPU, without place. fix: overlap. owner: the wait of float() or copies"),
    "thread_started_for_each_sample": Expected(
        "threads: 96 threads are started and joined in each step for some microseconds of work each (milliseconds in range prepare; the "
        "GPU "
        "idles)",
        cause=r"thread|start|join|Python|host|idle", place="threads = [threading.Thread(target=turn_and_crop, ...) ...]",
        owner=r"prepare|thread|start|join|turn_and_crop|Python",
        remedy="keep a pool of a few threads, and give each many samples (or no threads)",
        fix=r"pool|keep|fewer|once|reuse|worker|without threads|overlap|DataLoader", gain="half or more",
        forbidden=r"thread.*(start|each step|9\d)",
        told="cause: threads are started (and joined) in each step. fix: a pool that is kept, fewer threads. owner: threading "
             "(start/join) or "
             "range prepare or its line; host code",
        partly="cause: Python in prepare holds the step while the GPU idles, or a lock wait without the threads. fix: overlap, workers. "
             "owner: step, "
               "waiting in float()"),
    "copy_stream_waits_for_the_step": Expected(
        "streams: the copy of the next batch (134 MB) is on a second stream, which first waits for all work just launched, so copies and "
        "computing alternate instead of overlapping (the GPU computes nothing for about 2.5 ms a step)",
        cause=r"overlap|wait_stream|stream|Memcpy|HtoD|cop(y|ies)|alternat", place="side.wait_stream(torch.cuda.current_stream())",
        owner=r"copy_into|Memcpy|HtoD|copy_|wait",
        remedy="wait only for the event after the last use of that place",
        fix=r"event|overlap|wait_stream|earlier|before|without.*wait|double buffer|prefetch",
        gain="two fifths", forbidden=r"not overlap|wait_stream|HtoD.*(hold|idle)",
        told="cause: copies do not overlap because the copy stream waits for the computing stream. fix: do not wait for the whole "
             "stream (an "
             "earlier event). owner: copy at copy_into / its line; waiting between streams, copying",
        partly="cause: copies are not hidden behind computing, without why. fix: pinned memory, another stream, non_blocking (which it "
             "has). "
               "owner: memcpy HtoD alone"),
    # traps.py
    "results_leave_on_a_second_stream": trap(
        "results are copied to pinned memory on a second stream while the next batch is computed; the copies are hidden",
        r"cop(y|ies).*(hold|not overlap|another stream)|pageable"),
    "penalty_by_second_derivatives": trap(
        "the penalty is a function of the gradient, so create_graph and the double backward pass are needed",
        r"create_graph.*(leave|remove|without|False)|second backward.*(leave|remove|without)|twice.*same"),
    "one_user_reads_all_weights": trap(
        "one token at a time for one user: each needs the one before; the graph's kernels read 1 GB of weights for each and are bound "
        "by memory",
        r"launch.bound|CPU-bound|Python.*hold|(one|single) (pass|call)|at once|CUDA graph.*(use|capture|try)"),
    "heartbeat_thread_sleeps": trap(
        "a thread that sleeps on an event for 20 ms at a time takes no time of the step",
        r"heartbeat|(lock|sleep|thread).*(hold|cost|contend|delay)"),
    "router_in_float32": trap(
        "a router computes in float32 on purpose, on 64 outputs: a few percent of the step",
        r"(float32|cast).*(by accident|accident|unintended|instead)|router.*(bfloat16|half|16 bits)"),
}
