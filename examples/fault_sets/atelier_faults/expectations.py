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
    # pictures.py
    "heatmaps_drawn_over_whole_pictures": Expected(
        "GPU work bound by memory: the bell of each of 4096 objects is drawn over its whole map of 192 x 192 cells (float32 tensors of "
        "604 MB, about five passes over them), though it differs from zero in 31 x 31 cells at most",
        cause=r"aten::(exp|div|add|neg|amax)|elementwise|604 MB|0\.6 GB|broadcast|targets|memory|chain|float32",
        place="bells = torch.exp(-(down + across) / ...); return bells.amax(dim=1)",
        owner=r"targets|draw_everywhere|aten::(exp|div|add|neg|amax)",
        remedy="draw each bell in its window only and write it with a scattered maximum; or multiply a row and a column of exponentials",
        fix=r"window|near|smaller|only|fus|compile|scatter|16 bits|bfloat16|fewer|factor|once|in place", gain="two fifths to a half",
        forbidden=r"draw_everywhere|aten::exp.*(hold|most)",
        told="cause: a chain of elementwise kernels and a maximum over tensors of 604 MB (range targets / draw_everywhere) holds so much. "
             "fix: a smaller region, or fewer passes (fuse, compile, 16 bits). owner: range targets, draw_everywhere or its line; GPU work "
             "bound by memory",
        partly="cause: elementwise kernels hold so much, without place or bytes. fix: general (a larger batch, TF32). owner: kernel names"),
    "coordinates_joined_in_each_layer": Expected(
        "memory: each of six convolutions first copies its input of 134 MB into a new tensor with three channels more (aten::cat of 64 and "
        "3 channels), and 67 channels are an odd number for the kernels of convolutions",
        cause=r"aten::cat|cop(y|ies|ied)|67|channels|join|concat", place="self.conv(torch.cat([x, self.where], dim=1))",
        owner=r"CoordConv|aten::(cat|convolution|conv2d|cudnn_convolution)",
        remedy="convolve the coordinates apart: they add a constant picture (with bias), made once",
        fix=r"without|leave out|once|constant|apart|separate|add|pad|multiple|even|8|avoid|in place|into", gain="a third or more",
        forbidden=r"aten::cat",
        told="cause: cat copies each input (134 MB, six times), or 67 channels are bad for the convolution. fix: avoid the copy, or a "
             "multiple of 8 channels, or the coordinates apart. owner: CoordConv.forward or its line, aten::cat; copies on the GPU",
        partly="cause: convolutions or copies hold the step, without why. fix: general (compile, fuse). owner: kernel names"),
    "crop_of_pinned_memory_sent": Expected(
        "copying: a slice of the pinned batch has gaps, so .to first copies 42 MB on the CPU into new pageable memory, and sends it from "
        "there, slowly and while the CPU waits; the GPU idles",
        cause=r"pageable|not contiguous|contiguous|slice|strid|gap|cop(y|ies) on the CPU|HtoD|idle",
        place="frames[:, :, top:top + cut, left:left + cut].to(s.device, non_blocking=True)",
        owner=r"aten::(to|copy_|_to_copy|contiguous)|Memcpy HtoD|step",
        remedy="send the whole pinned frames and cut on the GPU; or cut into pinned memory",
        fix=r"cut|crop|slice|on the GPU|pin|contiguous|whole|after", gain="most",
        forbidden=r"pageable",
        told="cause: a pageable copy to the GPU (of 42 MB), with or without the copy on the CPU before it (a slice with gaps). fix: pinned "
             "memory for what is sent, or send first and cut after. owner: aten::to / aten::copy_ at its line; copying, CPU",
        partly="cause: the GPU idles for the CPU or a copy, without why. fix: overlap in general. owner: the wait of float()"),
    "transform_padded_too_far": Expected(
        "GPU work bound by memory: rfft and irfft of 128 clips have 524,288 points, though 136,395 would do (clip and echo of 4096), so "
        "each transform and the product of spectra moves 3.8 times the bytes",
        cause=r"fft|524,?288|pad|larger than|spectr|irfft", place="size = ... 1 << (2 * length).bit_length()",
        owner=r"reverb|fft|aten::_fft",
        remedy="pad to length + taps - 1, rounded up to a size with small factors; or overlap-add with short transforms",
        fix=r"pad|short|smaller|size|fewer points|less|length|overlap.add|power", gain="a half",
        forbidden=r"(pad|524,?288).*(too|far|larger)",
        told="cause: FFTs of 524,288 points (of clips of 132,300) hold the step. fix: a shorter transform, less padding. owner: range "
             "reverb, rfft/irfft or its line; GPU work bound by memory",
        partly="cause: FFT kernels hold the step, without their size. fix: general. owner: kernel names"),
    # serving.py
    "ended_answers_stay_in_batch": Expected(
        "GPU work: all 64 answers are decoded in each step, 56 of which have ended and are thrown away (torch.where); attention reads "
        "caches of 4.3 GB, an eighth of which is needed",
        cause=r"scaled_dot_product|attention|flash|cache|64 rows|ended|where|unused|thrown", place="following = model(tokens, position)",
        owner=r"decode|scaled_dot_product|flash|attention|Decoder",
        remedy="take ended answers out of the batch (and their rows out of the caches), or put new requests into their places",
        fix=r"ended|rows|smaller|fewer|only|remove|skip|compact|new requests|continuous|shorter|less", gain="a half or more",
        forbidden=r"(ended|finished).*(rows|answers)",
        told="cause: attention over the caches of 64 rows holds the step (bytes or shape), with the question whether all rows are needed. "
             "fix: fewer rows, less cache to read. owner: range decode, attention in Decoder.forward or its line; GPU work bound by memory",
        partly="cause: attention kernels hold the step. fix: another kernel, fewer bits. owner: kernel names"),
    "pruning_masks_applied_while_serving": Expected(
        "memory: before each of eight layers the hook of torch.nn.utils.prune multiplies the weight of 134 MB by its mask (400 MB moved a "
        "layer), though both are constant; the product itself reads 134 MB for 16 rows",
        cause=r"aten::mul|prune|mask|constant|again|each step|elementwise|weight", place="prune.custom_from_mask(...) without prune.remove",
        owner=r"prune|apply_mask|aten::mul|__call__|hook",
        remedy="prune.remove(layer, 'weight') before serving: the mask is multiplied in once",
        fix=r"once|remove|keep|before|outside|cache|fold", gain="two thirds",
        forbidden=r"prune|mask.*mul",
        told="cause: aten::mul of weights with masks (134 MB each, eight times, the same in each step) holds so much. fix: once, ahead. "
             "owner: prune's hook (apply_mask, __call__) or aten::mul there; GPU work bound by memory",
        partly="cause: elementwise kernels hold so much, without what they multiply. fix: fuse, compile. owner: kernel names"),
    "mask_compared_in_each_layer": Expected(
        "waiting: torch.equal compares the padding and the texts in each of 24 layers and waits for the GPU to know (48 copies of one byte "
        "and waits a step), so launches never get ahead",
        cause=r"aten::(equal|item|is_nonzero|_local_scalar_dense)|wait|synchroni|24|48",
        place="not (torch.equal(self.kept[0], padding) and torch.equal(...))",
        owner=r"kept_mask|equal|item|_local_scalar_dense|cudaStreamSynchronize",
        remedy="make the mask once a pass and hand it to the layers; or compare identity (is)",
        fix=r"once|hand|before the loop|out of|identity| is |without|remove|keep .*GPU|avoid|cache", gain="a quarter to two fifths",
        forbidden=r"equal.*wait|wait.*equal",
        told="cause: torch.equal (48 waits a step) in kept_mask. fix: once for all layers, or without the comparison. owner: kept_mask / "
             "aten::equal at its line; waits",
        partly="cause: waits of item, without place; or launch-bound. fix: fewer waits in general, a graph. owner: cudaStreamSynchronize"),
    "graph_of_its_own_for_each_layer": Expected(
        "launch overhead: 96 CUDA graphs of two small kernels each are launched one by one (96 cudaGraphLaunch a step), so the GPU waits "
        "between them; one graph could hold all",
        cause=r"cudaGraphLaunch|96 (graphs|launches|times|x)|graphs|launch|small|tiny", place="for replay in replays: answer = replay()",
        owner=r"cudaGraphLaunch|replay|graph",
        remedy="capture all layers in one graph", fix=r"one graph|single graph|fewer graphs|larger graph|whole|together|merge",
        gain="a third or more",
        forbidden=r"(many|96).*graphs",
        told="cause: many small graphs are launched one by one. fix: one graph for all. owner: range replay, cudaGraphLaunch or its line; "
             "launch overhead",
        partly="cause: launch-bound, small kernels. fix: a CUDA graph or compile (it has graphs), larger batches. owner: kernel names"),
    "waiting_requests_sorted_each_token": Expected(
        "host code without events: a list of 20,000 requests is sorted at each token with a key made in Python (20,000 calls of a lambda; "
        "milliseconds of range schedule, in which the GPU idles)",
        cause=r"sort|key|lambda|schedule|Python|host|idle", place="waiting.sort(key=lambda request: (...))",
        owner=r"schedule|key|lambda|sort",
        remedy="heapq or bisect.insort; or sort while the GPU decodes",
        fix=r"heap|bisect|insort|once|keep|sorted|overlap|while the GPU|thread|process|ahead|fewer|before", gain="most",
        forbidden=r"(sort|schedule).*(hold|idle)",
        told="cause: Python in schedule (sort, key) holds the step while the GPU idles. fix: a heap or another structure, or overlap with "
             "the GPU. owner: schedule, key, lambda or its line; host code",
        partly="cause: the GPU idles for Python, without place. fix: overlap in general. owner: the wait of tolist"),
    "batch_window_waited_out": Expected(
        "host, waiting for a lock: collect waits 4 ms in queue.get for more requests, though the batch of 16 is full; neither CPU nor GPU "
        "works",
        cause=r"queue|get|collect|wait|sleep|idle|timeout|blocked|lock", place="batch.append(inbox.get(timeout=left))",
        owner=r"collect|queue|get|wait|acquire",
        remedy="end the wait when the batch is full",
        fix=r"full|shorter|timeout|less|do not wait|without waiting|window|at once|ahead|overlap|while",
        gain="most", forbidden=r"(queue|get|collect).*(wait|idle).*(ms|%)",
        told="cause: the step waits in collect / queue.get while CPU and GPU idle. fix: do not wait (so long), or overlap. owner: collect, "
             "queue.get or its line; waiting on the host",
        partly="cause: the GPU idles for Python, without what or that it only waits. fix: overlap in general. owner: the copy or float()"),
    "database_normalised_for_each_query": Expected(
        "memory: two million vectors that never change (1 GB) are normalised in each step (norm and division: 3 GB moved, and 1 GB of new "
        "memory), before a product that reads them once",
        cause=r"norm|aten::div|constant|again|each step|same|memory|elementwise", place="F.normalize(right, dim=1)",
        owner=r"cosine|normalize|aten::(div|linalg_vector_norm|norm)",
        remedy="normalise the vectors once, when they come; or divide the scores by kept norms",
        fix=r"once|keep|before|ahead|outside|cache|precompute", gain="two thirds",
        forbidden=r"normali[sz]e.*(1 GB|2,?000,?000|again)",
        told="cause: normalising the database (norm, division over 1 GB) holds so much. fix: once, keep it. owner: cosine / F.normalize or "
             "its line, aten::div and linalg_vector_norm; GPU work bound by memory",
        partly="cause: elementwise and reduction kernels hold so much, without place. fix: fuse, compile. owner: kernel names"),
    # training.py
    "entropy_of_all_words_for_the_log": Expected(
        "GPU work bound by memory: the entropy over 2048 x 64,000 float32 scores (524 MB) is computed in each step (log_softmax, exp, mul, "
        "sum), and only every hundredth is read",
        cause=r"watch|entropy|log_softmax|aten::(exp|mul|sum)|unused|nobody|elementwise|524 MB|twice|2 times",
        place="watch(scores): chances = scores.log_softmax(dim=-1)", owner=r"watch|entropy|log_softmax|aten::(exp|mul|sum)",
        remedy="compute it only in steps that write it; or from what cross_entropy made",
        fix=r"only|less often|every n|hundredth|rarely|skip|fus|compile|reuse|once|leave out|remove", gain="a third",
        forbidden=r"watch|entropy.*(hold|each step)",
        told="cause: watch (log_softmax, exp, mul, sum over 524 MB) holds so much. fix: less often, or fewer passes. owner: watch or its "
             "lines, those operators with place; GPU work bound by memory",
        partly="cause: softmax or elementwise kernels hold so much, without place. fix: fuse the loss, 16 bits. owner: kernel names"),
    "workers_started_for_each_epoch": Expected(
        "processes: each epoch of four batches starts two worker processes and ends them (fork of the whole process, and joins: tens of "
        "milliseconds, in which the GPU idles)",
        cause=r"worker|fork|process|start|persistent|epoch|DataLoader|__iter__|join|popen",
        place="DataLoader(..., persistent_workers=False)",
        owner=r"DataLoader|_MultiProcessing|worker|fork|Popen|start|__iter__|_shutdown",
        remedy="persistent_workers=True; or longer epochs", fix=r"persistent|keep|once|fewer|longer|reuse|num_workers=0|without workers",
        gain="most",
        forbidden=r"persistent_workers|(start|fork).*workers?.*(each|every)",
        told="cause: worker processes are started (and ended) for each epoch. fix: persistent_workers, or no workers. owner: the iterator "
             "of DataLoader (_MultiProcessingDataLoaderIter, Popen, fork, start, join) or the loop's line; starting processes",
        partly="cause: the step waits for the DataLoader, or the GPU idles for Python, without the starts. fix: more workers, prefetch. "
        "owner: "
               "next / DataLoader"),
    "a_file_for_each_sample": Expected(
        "host: 256 small files are opened, their headers parsed and read in each step (np.load; tens of milliseconds of range "
        "read_batch, in "
        "which the GPU idles)",
        cause=r"np\.load|load|open|file|read|Python|host|idle|header|literal_eval",
        place="np.load(os.path.join(folder, f'{number:05}.npy'))",
        owner=r"read_batch|read|load|listcomp|npyio|format",
        remedy="one file (memory-mapped) for all samples; or read in worker processes ahead",
        fix=r"one file|memmap|mmap|memory|worker|thread|ahead|prefetch|process|keep|once|fewer|overlap|DataLoader|cache", gain="most",
        forbidden=r"(np\.load|files?|read_batch).*(hold|idle)",
        told="cause: np.load of single files (or Python in read / read_batch) holds the step while the GPU idles. fix: one file, "
        "memory, or "
             "read ahead in workers. owner: read, np.load, range read_batch or its line; host code, files",
        partly="cause: the GPU idles for Python or data, without place. fix: overlap in general. owner: the copy, the wait of float()"),
    "weights_reach_the_actor_by_the_cpu": Expected(
        "copying: after each update 68 MB of weights go to pageable host memory as NumPy arrays and back to the same GPU (DtoH, then HtoD, "
        "tens of milliseconds of range sync_weights)",
        cause=r"DtoH|HtoD|pageable|cop(y|ies)|CPU|round trip|host|NumPy", place="{name: value.cpu().numpy() ...}; load_state_dict",
        owner=r"sync_weights|get_weights|set_weights|load_state_dict|aten::(copy_|to)",
        remedy="copy on the GPU (load_state_dict of the GPU's tensors, or _foreach_copy_), or share the network",
        fix=r"on the GPU|stay|without|share|keep|directly|device|pin|less often", gain="most",
        forbidden=r"pageable|round trip|DtoH.*MB",
        told="cause: weights go to the CPU and back (or: large pageable copies in get_weights/set_weights). fix: copy on the GPU; share. "
             "owner: range sync_weights, get_weights/set_weights or their lines; copying",
        partly="cause: pageable copies or waits, without that they return or their place. fix: pin, non_blocking. owner: Memcpy DtoH/HtoD"),
    "jacobian_made_in_backward": Expected(
        "GPU work bound by memory: the backward pass of Choice makes a matrix of 256 x 256 for each of 4096 rows (tensors of 1.07 GB: "
        "diag_embed, an outer product, a difference, bmm), where a formula needs one pass over 4 MB",
        cause=r"ChoiceBackward|diag_embed|bmm|jacobian|1(\.\d+)? GB|outer|backward|elementwise",
        place="jacobian = torch.diag_embed(chances) - chances.unsqueeze(-1) * ...", owner=r"Choice|backward|diag_embed|aten::(bmm|sub|mul)",
        remedy="chances * (grad - (grad * chances).sum(-1, keepdim=True)); or leave the backward pass of softmax to autograd",
        fix=r"formula|without|avoid|autograd|softmax|instead|closed|sum|smaller|form|fus|compile", gain="a half or more",
        forbidden=r"jacobian|diag_embed",
        told="cause: ChoiceBackward makes tensors of 1 GB (diag_embed, sub, bmm) and holds so much. fix: another form without the "
        "matrices. "
             "owner: Choice.backward / ChoiceBackward or its line; GPU work bound by memory",
        partly="cause: elementwise kernels or bmm hold so much, without place; or backward in general. fix: lower precision. owner: kernel "
               "names"),
    "gradients_made_for_each_trial": Expected(
        "GPU work: six trial lengths are each tried with a backward pass (closure), whose gradients nobody reads (7 backward passes a "
        "step, "
        "1 is needed)",
        cause=r"backward|gradient|unused|nobody|7 (times|passes|x)|6 (times|passes|x)|closure|line_search|twice|again",
        place="tried.append(closure())  (in the loop)", owner=r"closure|line_search|backward|AddmmBackward0",
        remedy="loss without gradients in the search (no_grad, no backward)",
        fix=r"no_grad|inference|without (grad|backward)|leave out|only the loss|skip|fewer|batch|once",
        gain="a half", forbidden=r"backward.*(times|passes|nobody)",
        told="cause: backward runs seven times a step (six in line_search) and its gradients are not used, or closure repeats forward and "
             "backward. fix: no backward/gradients there, or fewer trials. owner: closure, range line_search or its line; GPU work",
        partly="cause: matrix products or backward hold the step. fix: lower precision, compile. owner: kernel names, aten::mm"),
    # science.py
    "index_repeated_for_each_feature": Expected(
        "memory: the numbers of source and target nodes are written out for each of 64 features (repeat: int64 tensors of 768 MB, twice a "
        "layer) and read again by gather and scatter_add, twice the bytes of the messages",
        cause=r"repeat|gather|scatter_add|int64|768 MB|index|cop(y|ies)", place="source.view(-1, 1).repeat(1, h.shape[1])",
        owner=r"MessagePassing|propagate|aten::(repeat|copy_|gather|scatter_add_?)",
        remedy="index_select and index_add_ with the plain index (or expand)",
        fix=r"index_select|index_add|expand|instead|without|once|int32|smaller|keep|segment|sort|avoid", gain="a third to a half",
        forbidden=r"aten::repeat|scatter_add|768 MB",
        told="cause: repeat writes indices of 768 MB, or gather/scatter_add read such indices. fix: index_select/index_add_, expand, or "
             "make them once. owner: MessagePassing.forward or its lines, range propagate, aten::repeat; GPU work bound by memory",
        partly="cause: gather/scatter (atomics) hold the step, without the indices. fix: sort, segments. owner: kernel names"),
    "power_by_repeated_products": Expected(
        "GPU work: the 64th power of a matrix of 1024 x 1024 is made by 63 products in float32, one after the other, for each of two "
        "worlds "
        "(126 aten::mm a step; squaring needs 6)",
        cause=r"aten::(mm|matmul)|63|126|64|loop|product|power|float32|TF32", place="power = power @ chances",
        owner=r"after|aten::(mm|matmul)|loop",
        remedy="square (torch.linalg.matrix_power)", fix=r"matrix_power|squar|fewer|power|TF32|tf32|bfloat16|half", gain="most",
        forbidden=r"(63|126|64).*(products|times)",
        told="cause: 63 products in a loop (after), each depending on the one before, hold the step. fix: squaring, fewer products "
        "(TF32 or "
             "16 bits: a reader grants partly). owner: after or its line, aten::mm there; GPU work",
        partly="cause: float32 products hold the step (true, not the root). fix: TF32 or 16 bits, batch both worlds. owner: aten::mm"),
    "matrix_factored_for_each_right_side": Expected(
        "GPU work: linalg.solve factors the same kernel matrix of 3072 x 3072 in each step (LU, milliseconds, and a wait for its error "
        "code) "
        "to solve for 16 right sides",
        cause=r"linalg_solve|linalg|lu_factor|getrf|factor|same|again|trsm|LU|solve",
        place="weights = torch.linalg.solve(kernel, measured)",
        owner=r"posterior|linalg|solve|lu_factor|getrf",
        remedy="factor once (Cholesky) and solve with the factor", fix=r"once|factor|cholesky|keep|lu_factor|reuse|cache|ahead",
        gain="most",
        forbidden=r"(lu_factor|linalg\.solve|getrf)",
        told="cause: the factorisation in linalg.solve holds the step (of a matrix that stays the same). fix: factor once, reuse. owner: "
             "range posterior, aten::linalg_solve_ex or its line; GPU work",
        partly="cause: linalg.solve waits for its check; or small kernels. fix: solve_ex, batch. owner: kernel names"),
    # traps.py
    "copy_that_pays_back": trap(
        "the transposed copy is read twelve times row by row; without it each pick would read single numbers far apart",
        r"(contiguous|transpos|cop(y|ies)).*(leave out|remove|without|needless|avoid)"),
    "optimizer_is_most_of_it": trap(
        "all 268 million weights have gradients, and one fused kernel updates them: it moves the bytes it must",
        r"fused=True|foreach|[Oo]ptimizer.*(loop|one by one|fuse)"),
    "layers_dropped_at_random": trap(
        "each step has another number of layers by design, so its time changes with its work",
        r"(uneven|slow|late) steps?.*(stall|collect|wait|cpu|noise)|not every step|(fix|remove).*uneven"),
    "critic_updated_three_times": trap(
        "the three updates use other noise, other pictures and newer weights; none can be left out or joined",
        r"(same|equal|again|three times|3 times).*(once|reuse|leave out|first result|one call|batch)"),
}
