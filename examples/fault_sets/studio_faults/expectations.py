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
    "guidance_at_scale_one": Expected(
        "GPU work: at six of eight levels of noise the scale of guidance is 1, so the half of the batch without a prompt cancels out, and "
        "is "
        "computed all the same (8 passes over 8192 rows, where 2 over 8192 and 6 over 4096 do)",
        cause=r"guid|half|unconditional|cancel|twice|8 (times|calls|x)|rows|denoise|aten::(mm|linear)",
        place="both = denoiser(torch.cat([x, x]), torch.cat([nothing, words]), level)",
        owner=r"denois|Denoiser|aten::(mm|linear|matmul)|GEMM",
        remedy="where the scale is 1, run the half with the prompt only",
        fix=r"half|only|skip|fewer|smaller|leave out|guid", gain="a third",
        forbidden=r"(half|unconditional|guid).*(cancel|for nothing|leave out)",
        told="cause: the denoiser (range denoise, 8 passes of 8192 rows a step) holds the step, with the question whether each pass needs "
             "all "
             "its rows. fix: fewer rows or passes. owner: range denoise / Denoiser / its line; GPU work, matrix products",
        partly="cause: matrix products or elementwise kernels hold the step. fix: fuse, compile, lower precision. owner: kernels without "
               "place"),
    "flips_by_grid_sample": Expected(
        "GPU work in the wrong form: half of 512 pictures are flipped by affine_grid and grid_sample, which interpolate each of 77 million "
        "numbers at computed places (grid of 206 MB, made anew each step)",
        cause=r"grid_sampl|affine_grid|interpol", place="return F.grid_sample(x, grid, align_corners=False)",
        owner=r"augment|grid_sampl|affine_grid",
        remedy="x.flip(3) for the chosen pictures (torch.where, or an index); keep the grid if one is needed",
        fix=r"flip|index|where|instead|once|keep|16 bits|bfloat16|half|before|uint8|smaller|crop|reverse", gain="half or more",
        forbidden=r"grid_sampl|affine_grid",
        told="cause: grid_sample (with affine_grid) holds the step, as a resampling that is general or in float32. fix: flip or index "
             "instead (or keep the grid, fewer bits). owner: augment / augmented / aten::grid_sampler_2d at its line; GPU work",
        partly="cause: augmentation (range augment) holds so much. fix: fuse or compile. owner: a kernel name without place"),
    "pixels_hashed_for_a_key": Expected(
        "host code without events: sha256 over 786 KB of each of 8 pictures (milliseconds of the range look_up, in which the GPU idles)",
        cause=r"sha256|hash|host|Python|idle|look_up",
        place="return hashlib.sha256(name.encode() + pictures[number].tobytes()).hexdigest()",
        owner=r"look_up|key_of|sha256|hash|tobytes",
        remedy="a key of the name and version; or hash in another thread, or with a faster checksum",
        fix=r"key|name|once|another thread|overlap|worker|cheaper|faster|less|without|leave out|move|before|keep|while the GPU",
        gain="most",
        forbidden=r"(hash|sha256).*(hold|idle)",
        told="cause: hashing (or Python in key_of / look_up) holds the step while the GPU idles. fix: do not hash the pixels, or "
             "elsewhere / "
             "overlapped. owner: key_of, sha256, look_up or its line; host code",
        partly="cause: the GPU idles for Python, without place. fix: overlap in general. owner: the copies or the wait of tolist"),
    "batch_in_new_host_memory": Expected(
        "memory of the host: np.stack allocates 25 MB of new memory in each step (page faults), which is then copied once more, to pinned "
        "memory (milliseconds of range collate; the GPU idles)",
        cause=r"np\.stack|stack|alloc|page|copied twice|host|Python|idle|copy_|collate|numpy",
        place="staging.copy_(torch.from_numpy(np.stack(frames)))",
        owner=r"collate|stack|aten::copy_",
        remedy="np.stack(frames, out=...) into the pinned memory",
        fix=r"out=|into|directly|pinned|once|reuse|keep|without.*copy|worker|thread|overlap|prefetch|ahead|next batch", gain="a half",
        forbidden=r"(np\.stack|stack).*(new memory|alloc|twice)",
        told="cause: np.stack (new memory) or the second copy on the CPU holds the step while the GPU idles. fix: stack into the pinned "
             "memory / reuse memory, or prepare in another thread. owner: collate / np.stack / aten::copy_ of the CPU at its line; host",
        partly="cause: the GPU idles for the CPU, without place. fix: overlap in general. owner: the wait of float() or the copy to the "
               "GPU"),
    # language.py
    "mask_sent_whole": Expected(
        "copying: an attention mask of 67 MB ([8, 1, 2048, 2048] of 16 bits) is sent to the GPU in each step (HtoD from pinned memory, "
        "over a "
        "millisecond, nothing beside it), though 131 KB of document numbers say the same",
        cause=r"Memcpy|HtoD|copy|cop(ies|ied)|67|MB", place="here = sent.to(s.device, non_blocking=True)",
        owner=r"inputs|HtoD|Memcpy|aten::(copy_|_?to)",
        remedy="send the documents' numbers (or lengths) and make the mask on the GPU",
        fix=r"on the GPU|smaller|less|fewer|build|make|keep|overlap|stream|ahead|prefetch", gain="half",
        forbidden=r"(mask|67).*(sent|cop)",
        told="cause: a copy of 67 MB to the GPU (pinned, not overlapped) holds so much. fix: make it on the GPU / send less, or overlap it "
             "on another stream. owner: range inputs or its line; copying HtoD",
        partly="cause: copies without bytes or place. fix: pin it (it is pinned). owner: Memcpy HtoD alone"),
    "routes_read_from_the_gpu": Expected(
        "waiting: each of 10 layers computes its routes on the GPU and reads them (bincount and tolist, several waits a layer), so the GPU "
        "runs dry each time; the routes are equal in all layers and known from the words",
        cause=r"tolist|bincount|wait|sync|item|DtoH|again|same", place="return expert.argsort(), torch.bincount(...).tolist()",
        owner=r"route|bincount|tolist|aten::(item|_local_scalar_dense|argsort|sort|copy_)|wait",
        remedy="compute routes and counts once, where the words are loaded (or once a step)",
        fix=r"once|reuse|keep|ahead|on the CPU|before|known|without|fixed|first|out of the loop", gain="a third to a half",
        forbidden=r"(bincount|tolist|route).*(wait|sync)",
        told="cause: waits in routes (bincount, tolist), several per layer, or the same routes computed 10 times. fix: compute "
             "once/ahead, or "
             "without a read. owner: range route / routes / its line; waits for the GPU (or repeated work)",
        partly="cause: launch-bound with a loop of products, or waits without place. fix: bmm, a graph. owner: aten::mm, the step"),
    "grammar_mask_in_python": Expected(
        "host code without events: Python asks for each of 32,000 words whether it may come next, for 4 answers, and makes tensors of the "
        "lists (milliseconds of range grammar; the GPU idles)",
        cause=r"Python|host|idle|list|tensor\(|torch\.tensor|grammar|forbidden|aten::(tensor|stack)|built",
        place="return torch.tensor([word not in may for word in range(words)])",
        owner=r"grammar|forbidden|listcomp|torch\.tensor",
        remedy="keep the mask of each state on the GPU and choose by index",
        fix=r"keep|kept|once|cache|reuse|on the GPU|numpy|vector|ahead",
        gain="most", forbidden=r"(grammar|forbidden).*(hold|Python|list)",
        told="cause: Python in forbidden/grammar (lists of 32,000 words, tensors of lists) holds the step. fix: masks made once and kept, "
             "or "
             "vectorised. owner: forbidden, range grammar or its line; host code",
        partly="cause: the GPU idles for Python, without place; a pageable copy. fix: overlap, pin. owner: the copy, tolist"),
    "cache_cleared_for_each_batch": Expected(
        "memory: caches of 4.3 GB (16 tensors of 268 MB) are filled with zeros for each batch, of which an eighth is written and read",
        cause=r"zero|fill|clear|aten::zeros|268|GB", place="caches = [[new(rows, heads, room, size, ...) ...] ...]  (new = torch.zeros)",
        owner=r"new_cache|aten::(zeros|zero_|fill_)|fill",
        remedy="torch.empty, or one cache that is kept",
        fix=r"empty|keep|kept|reuse|once|smaller|without", gain="a third", forbidden=r"(zeros|fill).*(268|GB|cache)",
        told="cause: zeros of the caches (aten::zeros / fill_ of 268 MB each) hold so much. fix: torch.empty, keep it, or a smaller one. "
             "owner: range new_cache, aten::zeros or its line; GPU work bound by memory (fills)",
        partly="cause: elementwise kernels or fills without place or bytes. fix: fuse. owner: FillFunctor kernels"),
    "message_formatted_for_nobody": Expected(
        "host code without events: an f-string formats the whole model (repr of 230 modules) for a debug message that is switched off "
        "(milliseconds of Python before the forward pass; the GPU idles)",
        cause=r"__repr__|repr|format|Python|host|idle|log", place='log.debug(f"before the step: {model}")',
        owner=r"__repr__|repr|step|_addindent|format",
        remedy='log.debug("...%s", model), which formats only what is written; or remove it',
        fix=r"%s|lazy|remove|leave out|only|without|once|keep|not.*format|less often|move|isEnabledFor", gain="a quarter to a half",
        forbidden=r"repr|format.*(model|message)",
        told="cause: formatting the model (Module.__repr__) holds the step while the GPU idles. fix: format only when written, or leave it "
             "out. owner: Module.__repr__ or the line in step; host code",
        partly="cause: Python before forward holds the step, without what; or launch-bound. fix: a CUDA graph, compile. owner: step as a "
               "whole"),
    "gradients_averaged_over_one_rank": Expected(
        "copies on the GPU: gradients of 400 MB are put into a bucket (cat), divided by 1, and copied back (13 kernels, 2.4 GB moved) for "
        "nothing",
        cause=r"aten::(cat|copy_|div_?)|cat|copy|cop(ies|ied)|average|bucket|divi|MB|GB",
        place="bucket = torch.cat([gradient.flatten() ...])",
        owner=r"average|aten::(cat|copy_|div_)",
        remedy="leave it out with one rank; or let gradients be views of the bucket",
        fix=r"leave out|skip|remove|without|in.?place|view|foreach|avoid|only", gain="a quarter to two fifths",
        forbidden=r"(cat|bucket|average).*(hold|copied)",
        told="cause: gradients are concatenated, divided and copied back (range average; bytes). fix: leave it out, in place, or views. "
             "owner: "
             "average or its lines / aten::cat and copy_; GPU work bound by memory",
        partly="cause: copies or elementwise kernels hold so much, without what they copy. fix: fuse. owner: copy kernels without place"),
    # training.py
    "hops_nobody_reads": Expected(
        "GPU work: each of three layers computes all 412,000 nodes and 1.2 million edges, while the loss reads 2048 nodes (the second "
        "layer "
        "needs an eighth of the edges, the third a seventieth)",
        cause=r"index_(add|select)|same|3 (times|x)|three|nobody|few|2048|slice|thrown|unused|rows|edges|gather|scatter",
        place="h = layer(h, source[:edges], target[:edges], nodes, fan)",
        owner=r"Sage|aten::(index_add_?|index_select|addmm|linear)|indexFunc|layer",
        remedy="each layer computes only the nodes that later layers read",
        fix=r"only|fewer|trim|need|smaller|before|first|less", gain="two thirds", forbidden=r"(2048|few).*(read|used).*of",
        told="cause: layers work on all nodes although only the first 2048 rows are read after. fix: compute the needed nodes only. owner: "
             "Sage (its lines), aten::index_add_/index_select there; GPU work",
        partly="cause: index_add_/index_select (atomics, gathers) hold the step, 3 equal layers. fix: sorted segments, 16 bits, TF32. "
               "owner: "
               "kernels without place"),
    "whole_table_for_few_rows": Expected(
        "GPU work: the gradient of an embedding is dense: 2 GB of zeros are made, and the optimizer reads and writes the whole table (6 GB "
        "more) for at most 16,384 rows of 8 million",
        cause=r"embedding|dense|table|zeros|fill|whole|2(\.\d)? GB|all rows|few rows|sparse",
        place="table = nn.Embedding(items, size, sparse=good)",
        owner=r"[Ee]mbedding|optimizer|Optimizer|SGD|_foreach_add_",
        remedy="sparse=True with plain SGD (or SparseAdam; tables with a fused optimizer)",
        fix=r"sparse|only.*rows|rows.*only|fused|touched|smaller", gain="two thirds", forbidden=r"dense.*(gradient|table)|whole table",
        told="cause: a dense gradient of the table (embedding_dense_backward, zeros and update of the whole table). fix: sparse gradients "
             "/ "
             "only the touched rows. owner: embedding backward or SGD.step on that table; GPU work bound by memory",
        partly="cause: the optimizer (or fill, or embedding backward) holds the step, with bytes. fix: fused optimizer. owner: "
               "Optimizer.step "
               "without the table"),
    "zeros_for_an_unused_output": Expected(
        "GPU work: the second output of a custom function has no gradient, so autograd makes zeros of 67 MB, and the backward pass "
        "multiplies "
        "them twice by 4096 x 4096 (4 of 12 matrix products a step)",
        cause=r"zeros|unused|materiali|WithSecondTask|same shape|aten::(mm|matmul)|backward",
        place="return of_x + of_second @ second.mT, ...",
        owner=r"WithSecondTask|backward|aten::(mm|matmul)",
        remedy="ctx.set_materialize_grads(False), and leave out what belongs to a missing gradient",
        fix=r"set_materialize_grads|None|leave out|skip|needs_input_grad|fewer|only", gain="a third",
        forbidden=r"zeros.*(gradient|multipl)|materiali",
        told="cause: products with zeros for an unused output in WithSecondTaskBackward (or: its backward makes twice the products of "
             "what is "
             "needed). fix: do not materialise, skip. owner: WithSecondTaskBackward or its line; GPU work, products",
        partly="cause: the backward of WithSecondTask holds the step. fix: lower precision. owner: products without place"),
    "neighbours_sampled_in_python": Expected(
        "host code without events: random.choices draws neighbours node by node for 512 nodes (milliseconds of range sample, in which the "
        "GPU "
        "idles)",
        cause=r"choices|random|Python|host|idle|sample", place="return np.array([dice.choices(neighbours[node], k=fan) ...])",
        owner=r"sample|choices|random|listcomp",
        remedy="draw for all nodes at once with NumPy (offsets and degrees), or on the GPU, or in another process",
        fix=r"numpy|vector|at once|on the GPU|batch|worker|thread|process|overlap|ahead|prefetch", gain="half",
        forbidden=r"(choices|sample).*(hold|idle)",
        told="cause: Python in sample / random.choices holds the step while the GPU idles. fix: vectorise, or move away from the step. "
             "owner: "
             "sample, choices or its line; host code",
        partly="cause: the GPU idles for Python, without place. fix: overlap in general. owner: the wait of float()"),
    "average_of_frozen_weights": Expected(
        "GPU work: the moving average covers all 28 layers (940 MB of weights, 2.8 GB moved), of which 24 never change",
        cause=r"lerp|average|frozen|MB|GB|never change|memory", place="torch._foreach_lerp_([average for average, _ in kept], ...)",
        owner=r"average|_foreach_lerp_|lerp",
        remedy="average only weights that learn", fix=r"only|frozen|fewer|less often|skip|requires_grad|leave out|not every step",
        gain="a third to two fifths", forbidden=r"(average|lerp).*frozen",
        told="cause: the average of weights (range average, _foreach_lerp_) holds so much, bytes. fix: only those that learn, or less "
             "often. "
             "owner: average / its line; GPU work bound by memory",
        partly="cause: elementwise kernels without place. fix: fuse. owner: kernels"),
    "ranges_observed_while_serving": Expected(
        "GPU work: hooks measure the largest value of each channel of 134 MB before each of 6 layers (abs, amax, maximum), and nothing "
        "reads "
        "them",
        cause=r"abs|amax|observe|hook|reduc|elementwise|unused",
        place="module.largest = torch.maximum(module.largest, inputs[0].abs().amax(dim=0))",
        owner=r"observe|aten::(abs|amax)|hook",
        remedy="remove the hooks after they have measured",
        fix=r"remove|leave out|only|without|fewer|sample|hook|less often|aminmax|norm|one pass|fus", gain="a quarter to a third",
        forbidden=r"observe|aten::(abs|amax)",
        told="cause: abs and amax in observe (a hook) hold so much. fix: remove, or less often (or: in one pass). owner: observe or its "
             "line, "
             "aten::abs/amax with place; GPU work bound by memory",
        partly="cause: elementwise or reduce kernels hold so much. fix: compile. owner: kernels without place"),
    # signals.py
    "running_total_by_triangle": Expected(
        "GPU work in the wrong form: running totals are a product with a triangle of ones (aten::mm of [1024, 8192] x [8192, 8192] in "
        "float32, "
        "137 GFLOP, half of them with zeros)",
        cause=r"aten::(mm|matmul)|GEMM|float32|8192|TF32|product", place="totals = x.cumsum(dim=1) if good else x @ triangle",
        owner=r"totals|aten::(mm|matmul)",
        remedy="cumsum", fix=r"cumsum|cumulative|scan|constant|other form|TF32|tf32|bfloat16|16 bits", gain="most",
        forbidden=r"aten::mm.*8192, ?8192|TF32|tf32",
        told="cause: a float32 product with a constant [8192, 8192] in totals holds the step. fix: cumsum, or (as a reader would grant) "
             "another "
             "form than a product. owner: aten::mm at its line or range totals; GPU work",
        partly="cause: float32 products hold the step (true, not the root). fix: TF32 or 16 bits. owner: GEMM kernel without place"),
    "spectrogram_on_the_cpu": Expected(
        "CPU operators in a GPU step: aten::stft (fft, abs, log1p) of 12 clips on the CPU, milliseconds of range features in which the GPU "
        "idles; then its result is copied from pageable memory (it is larger than the waves)",
        cause=r"stft|fft|CPU|idle|host", place="x = spectrogram(waves).to(s.device)",
        owner=r"features|spectrogram|stft|fft|aten::(abs|log1p)",
        remedy="send the waves and make spectrograms on the GPU", fix=r"on the GPU|to the GPU|GPU first|worker|DataLoader|ahead|prefetch",
        gain="most", forbidden=r"stft.*(CPU|idle)|pageable",
        told="cause: stft/fft (CPU operators) hold the step while the GPU idles. fix: on the GPU (or in workers). owner: spectrogram, "
             "aten::stft or range features; CPU operators",
        partly="cause: the GPU idles for the CPU, or a pageable copy. fix: pin. owner: the copy"),
    "environments_in_turn": Expected(
        "host code without events: Python advances 768 environments one after the other, twice a step (milliseconds of range "
        "environments, in "
        "which the GPU idles)",
        cause=r"Python|host|idle|environments|act|CartPole|768|loop", place="return np.array([cart.act(action) for cart, action in ...])",
        owner=r"environments|act|CartPole|listcomp",
        remedy="all environments at once with NumPy (or on the GPU); or in several processes",
        fix=r"numpy|vector|at once|on the GPU|batch|process|thread|overlap", gain="most",
        forbidden=r"CartPole|environments.*(hold|idle)",
        told="cause: Python in CartPole.act / environments holds the step while the GPU idles. fix: vectorise, or several processes. "
             "owner: "
             "act, range environments or its line; host code",
        partly="cause: the GPU idles for Python, without place; or tolist waits. fix: overlap in general. owner: tolist"),
    "streams_waited_for_in_turn": Expected(
        "waiting: the host waits for the stream of each model before it launches the next (stream.synchronize, 4 a step), so the four "
        "graphs "
        "run one after the other though each fills a small part of the GPU",
        cause=r"synchroni|wait|one after the other|overlap|serial|streams", place="stream.synchronize()  (in the loop)",
        owner=r"cudaStreamSynchronize|synchronize|wait|step",
        remedy="launch all four first, then wait (or let the current stream wait for events)",
        fix=r"after the loop|launch.*(all|first|before)|event|wait_stream|remove|later|once|together|overlap", gain="half or more",
        forbidden=r"(one after the other|not overlap|serial)",
        told="cause: waits (stream.synchronize) between the graphs keep the streams from overlapping. fix: wait once after all launches, "
             "events. owner: the synchronize at its line; waits",
        partly="cause: waits without effect named; or graphs with small kernels hold the step. fix: remove the waits in general; larger "
               "batches. owner: graph launches"),
    "samples_through_a_queue": Expected(
        "threads: 384 samples a step go one by one through a queue.Queue (lock, condition and switch of threads for each; milliseconds of "
        "range next_batch, in which the GPU idles)",
        cause=r"queue|get|thread|lock|GIL|Python|host|idle|wait", place="batch = ... np.stack([given.get() for _ in range(rows)])",
        owner=r"next_batch|queue|get|produce|thread",
        remedy="hand over whole batches", fix=r"batch|whole|fewer|at once|chunk|larger|together|process", gain="half or more",
        forbidden=r"queue.*(384|one by one|hold)",
        told="cause: queue.get (locks, threads that alternate; 384 a step) holds the step. fix: whole batches through the queue. owner: "
             "next_batch / queue.get / thread producer or its line; threads, host code",
        partly="cause: the GPU idles for Python or a slow producer (waits for data), without the single samples. fix: more workers. owner: "
               "wait of float()"),
    "frames_through_a_pipe": Expected(
        "processes: 12.6 MB of frames come from a worker process through a pipe, pickled (milliseconds of recv in range next_frames, in "
        "which "
        "the GPU idles)",
        cause=r"pipe|recv|pickle|process|read|host|idle|connection", place="got = here.recv()",
        owner=r"next_frames|recv|connection|_read|loads|read",
        remedy="shared memory, and only a word through the pipe",
        fix=r"shared|share_memory|without.*(pickle|copy)|memory|DataLoader|thread",
        gain="half or more", forbidden=r"(recv|pipe).*(pickle|bytes|MB)",
        told="cause: reading from the pipe / unpickling (recv) holds the step. fix: shared memory (or a DataLoader that uses it). owner: "
             "recv "
             "/ next_frames or its line; host code / waiting for another process",
        partly="cause: the GPU idles for Python or data, without place. fix: prefetch (it is). owner: wait of float()"),
    # traps.py
    "zeros_that_are_added_to": trap(
        "points are added to the cells of a grid, which must begin at zero; the scattered additions are the work",
        r"(zeros|fill|zero_).*(leave|remove|empty|without|needless)"),
    "master_weights_in_float32": trap(
        "the optimizer works on float32 weights; copies to 16 bits and back are the scheme, a few percent of the step",
        r"(cast|float32).*(by accident|accident|back and forth|unintended|leave out|keep.*16 bits)"),
    "online_and_target_encoder": trap(
        "two encoders of different weights read the same views; both results are needed, and the target's have no gradient",
        r"(same|equal|twice|again).*(pass|forward|input|work)|no_grad.*(add|use|missing)"),
    "dropout_on_purpose": trap(
        "eight answers with dropout say how sure the model is; they are made in one pass",
        r"dropout.*(left on|mistake|eval\(\)|switch|inference)|repeat.*(expand|twice|same)"),
    "only_answers_scored": trap(
        "the hidden states of answers are chosen by an index that the loader made, before the head; labels are as many",
        r"(boolean|nonzero|mask).*(wait|index)|(all|few) (positions|words|rows).*(head|scor|logits)"),
}
