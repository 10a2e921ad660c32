"""What `lanescope explain` should say of each program, written down before the programs ran and before any text was read.

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
    # serving.py
    "drafts_verified_one_by_one": Expected(
        "GPU work: the target model reads all its weights once for each of 8 drafted tokens (8 equal passes a step, products of 4 rows), "
        "although the tokens are known and one pass could score them all",
        cause=r"8 (passes|times|calls)|one (token|row) at a time|again|same weights|weights.*(read|8)|few rows|small batch|loop",
        place="scores.append(target(draft[:, at:at + 1], at)[:, -1])",
        owner=r"verify|target|linear|addmm|aten::mm|gemv|GEMM",
        remedy="score the whole draft in one pass with a causal mask",
        fix=r"one (pass|call|forward)|at once|together|batch|larger",
        gain="three quarters: 7 of 8 passes",
        forbidden=r"one (token|row) at a time|(verify|target).*8 (times|passes)",
        told="cause: equal passes over the same weights with 4 rows each, 8 a step. fix: all drafted tokens in one pass. "
             "owner: verify (or its line, or the model's linears); GPU work that is bound by reading weights, or many equal small products",
        partly="cause: products of few rows or launches hold the step, not that the passes could be one. fix: larger batch, CUDA graph. "
               "owner: linears without verify"),
    "each_processor_sorts": Expected(
        "GPU work: three processors of the sampler each sort scores of the whole vocabulary (3 aten::sort of [32, 128000] a step), the "
        "last two although only 100 candidates are left",
        cause=r"sort", place="self.drop: scores.sort(dim=-1, descending=True)", owner=r"sort|Processor|TopK|TopP|Typical|sampl",
        remedy="take the 100 candidates by topk first, let the others work on them, scatter nothing back",
        fix=r"topk|once|fewer|candidates|sorted.*(reuse|share)|before",
        gain="four fifths",
        forbidden=r"aten::sort.*(\d\d) %|sort.*128",
        told="cause: sorts of the whole vocabulary, several a step. fix: topk first, or sort once. owner: aten::sort at the processors (GPU work)",
        partly="cause: the sampler (radix sort kernels) holds the step, without that it is done again. fix: any faster sort. owner: kernels only"),
    "adapter_for_each_request": Expected(
        "launch overhead: a Python loop over 48 requests launches two tiny products and an addition for each, in two layers (about 300 "
        "tiny kernels a step while the GPU idles)",
        cause=r"loop|launch|tiny|small|\d\d+ times", place="down = x[number] @ self.down[adapter]",
        owner=r"loop|adapter|Lora|matmul|mv|mm|select|add_",
        remedy="gather the adapters of the requests and use two bmm (or a grouped kernel)",
        fix=r"bmm|batch|stack|gather|einsum|one call|grouped|CUDA graph",
        gain="most", forbidden=r"loop (of|over)? ?4\d|loop.*adapter",
        told="cause: a loop over requests with tiny products, launch-bound. fix: batch by bmm. owner: loop at that line; launches",
        partly="cause: launch-bound, tiny kernels, without the loop. fix: CUDA graph only. owner: the layer or aten::matmul"),
    "slots_listed_in_python": Expected(
        "host code without events: the slots of 16,384 tokens are listed by Python and made a tensor (milliseconds in which the GPU idles, "
        "in the range slot_mapping), then copied",
        cause=r"Python|host|idle|waits? for the CPU|list|aten::(tensor|copy_)|torch\.tensor|torch::tensor",
        place="slots += [table[at // PAGE] * PAGE + at % PAGE for at in range(begin, end)]",
        owner=r"slot_mapping|slots|Python|list|tensor",
        remedy="compute the slots on the GPU from the block table (or with numpy)",
        fix=r"on the GPU|vector|numpy|tensor op|move|arange|outside",
        gain="half or more", forbidden=r"slot_mapping.*(Python|idle)|torch\.tensor.*list",
        told="cause: Python in slot_mapping (lists) holds the step while the GPU idles. fix: vectorise, or compute on the GPU. owner: the range "
             "or line",
        partly="cause: GPU idles for Python without the place, or only the copy of the list. fix: pinned copy. owner: the step as a whole"),
    "text_detokenised_from_start": Expected(
        "host code without events: the text of each of 64 requests is joined from its first token on, for one new token (1,500 tokens each; "
        "the GPU idles after the tokens were read)",
        cause=r"Python|host|idle|join|detok|text", place="text = ''.join([vocabulary[token] for token in tokens])",
        owner=r"detokenise|join|Python|stream",
        remedy="decode only the last few tokens (keep an offset), or decode in another process",
        fix=r"only|last|offset|incremental|another (process|thread)|overlap|move|keep|while the GPU",
        gain="half or more", forbidden=r"detokenise.*(hold|Python|idle)",
        told="cause: Python code in detokenise while the GPU idles. fix: only new tokens, or another process. owner: range or line of detokenise",
        partly="cause: GPU idles for Python, without place; or only the wait of tolist. fix: overlap in general. owner: tolist"),
    "pool_copied_to_write_few_rows": Expected(
        "memory: index_copy (not in place) makes a new pool of keys or values to write 64 rows (8 copies of 268 MB a step)",
        cause=r"index_copy|cop(y|ies)|clone|whole|out of place|Memcpy", place="pool.index_copy(0, slots, new)",
        owner=r"index_copy|write|pool|copy_|clone|Memcpy",
        remedy="index_copy_ in place", fix=r"in.?place|index_copy_|_\b.*preallocat|without.*copy",
        gain="two thirds: bytes copied", forbidden=r"index_copy.*(whole|copies|in place)",
        told="cause: the whole pool is copied to write few rows. fix: in place. owner: aten::index_copy at that line; copies GPU to GPU, so many "
             "bytes",
        partly="cause: copies (DtoD memcpy) hold so much, without why. fix: avoid copies. owner: aten::clone or copy_ or memcpy alone"),
    # alignment.py
    "reference_scored_in_every_epoch": Expected(
        "GPU work: the frozen reference scores the same rollout in each of 4 inner epochs (4 equal forward passes without gradients a step, a third "
        "of the GPU time of an epoch)",
        cause=r"same|again|\d times|without grad|reference|no.?grad|equal", place="reference_scores = log_probs(reference, tokens)",
        owner=r"reference|log_probs|linear|addmm|mm",
        remedy="score the reference once per rollout and keep the log-probs", fix=r"once|keep|reuse|cache|before the loop|outside",
        gain="a fifth to a quarter", forbidden=r"reference.*(again|once)|4 (equal|same).*without grad",
        told="cause: equal forward passes (reference) done again in each epoch. fix: once a rollout. owner: range reference or its line; GPU work",
        partly="cause: matrix products hold the step, or forward without gradients named but not that it repeats. fix: none needed. owner: linears"),
    "scales_multiplied_into_weights": Expected(
        "GPU work: int8 weights are cast to bfloat16 and then multiplied by scales, a pass over 134 MB for each of 8 layers, before a product "
        "with 16 rows",
        cause=r"cast|scale|aten::mul|dequant|weight|to\(|_to_copy|elementwise|bandwidth",
        place="weight = self.quantised.to(x.dtype) * self.scale",
        owner=r"aten::mul|aten::_?to|copy_|Int8Linear|dequant",
        remedy="scale the output of the product (16 rows) and not the weights; better an int8 kernel",
        fix=r"after the product|output|fus|int8|kernel|compile|once|keep",
        gain="two fifths", forbidden=r"aten::mul.*(\d\d) %.*weight|multipl.*weights.*before",
        told="cause: weights are dequantised (cast and multiplied) each call, more bytes than the product. fix: scale after, or fuse (compile), "
             "or an int8 kernel. "
             "owner: aten::mul/aten::to in Int8Linear at that line; GPU work bound by memory",
        partly="cause: casts of weights alone. fix: keep bfloat16 weights. owner: elementwise kernels without place"),
    "counter_inside_compiled_module": Expected(
        "others (torch.compile): a counter in the compiled module changes each call, so it was compiled again until the limit of 8, after which "
        "it runs uncompiled: about 12 elementwise kernels a block over 64 MB each instead of a few fused ones",
        cause=r"recompil|compile|limit|eager|elementwise|unfused|chain|fus", place="self.calls += 1",
        owner=r"Gate|forward|compile|aten::(mul|add|sigmoid|pow|mean)|elementwise|chain",
        remedy="keep the counter outside of the compiled code (or in a tensor)",
        fix=r"compile|fus|counter|outside|dynamic|limit",
        gain="half", forbidden=r"recompil|not compiled|torch\.compile.*(use|would|try)",
        told="cause: elementwise chain unfused because the compiled module fell back to eager (or: recompiled). fix: take what changes out of "
             "compiled code. "
             "owner: the module (Gate) or its chain of elementwise kernels; memory-bound GPU work",
        partly="cause: chain of elementwise kernels that could be fused, without torch.compile's limit. fix: torch.compile. owner: aten ops"),
    # vision.py
    "frames_encoded_for_each_clip": Expected(
        "GPU work: overlapping clips are cut before the encoder of single frames, which so encodes each frame up to 4 times (136 frames instead "
        "of 40)",
        cause=r"same|again|overlap|conv|frames|times", place="seen = clips_of(videos)",
        owner=r"encoder|conv|cudnn|FrameEncoder",
        remedy="encode each frame once, cut clips of the features", fix=r"once|after|features|before|reuse|dedup|fewer",
        gain="two thirds", forbidden=r"(same|overlap).*(frame|row|image).*again|conv.*(channels_last|layout)",
        told="cause: encoder works on the same frames several times. fix: encode once, then unfold. owner: encoder's convolutions; GPU work",
        partly="cause: convolutions hold the step (so many images). fix: a smaller or faster convolution. owner: conv kernels"),
    "masks_upsampled_before_choice": Expected(
        "GPU work: 200 masks are enlarged to 1024 x 1024 and thresholded (memory-bound passes over 840 MB), of which 20 are kept",
        cause=r"upsampl|interpolat|bilinear|sigmoid|index|large", place="masks = enlarged(masks).sigmoid()",
        owner=r"upsampl|interpolat|sigmoid|enlarge|postprocess",
        remedy="choose the 20 by score first, then enlarge these", fix=r"first|before|fewer|select|choose|gather|after",
        gain="most", forbidden=r"upsampl.*\b200|(choose|select).*(first|before)",
        told="cause: enlarging (and passes over) masks that are thrown away. fix: choose first. owner: aten::upsample_bilinear2d in postprocess; "
             "GPU work",
        partly="cause: upsampling or elementwise passes hold the step. fix: fuse, lower precision. owner: kernels"),
    "slices_by_tensors_on_gpu": Expected(
        "waiting: slices by numbers that lie on the GPU: each start and end is read by itself (4 waits a box, 96 a step: aten::item, "
        "_local_scalar_dense, copies of 4 or 8 bytes)",
        cause=r"item|_local_scalar_dense|wait|sync|read", place="crop = features[:, box[1]:box[3], box[0]:box[2]]",
        owner=r"item|_local_scalar_dense|crop|slice|index|wait",
        remedy="boxes.tolist() once, or roi_align", fix=r"tolist|once|roi|one copy|cpu\(\)|on the GPU|batch",
        gain="a third to a half", forbidden=r"\b(9\d|96) (wait|item|time)|item.*96",
        told="cause: each slice waits for the GPU because its ends are tensors there (so many waits). fix: read all at once. owner: that line; "
             "waits for the GPU "
             "(aten::item inside of slicing)",
        partly="cause: item/waits named without the slice. fix: remove item. owner: aten::item without line"),
    # science.py
    "residual_at_boundary_points": Expected(
        "GPU work: second derivatives are taken at all 65,536 points, three quarters of which are on the boundary, where they are multiplied by zero",
        cause=r"backward|grad|derivative|tanh|mm|mask|zero", place="residual = laplacian(net, points) * inside",
        owner=r"laplacian|autograd|grad|tanh|mm|linear|residual",
        remedy="take derivatives at the points inside only", fix=r"only|select|fewer|inside|mask.*(before|first)|subset",
        gain="half or more", forbidden=r"(rows|points).*(thrown|zero|masked)",
        told="cause: work over rows whose result is masked to zero. fix: choose rows first. owner: laplacian (range, line); GPU work of second "
             "derivatives",
        partly="cause: second derivatives (double backward) hold the step. fix: cheaper derivatives. owner: mm, tanh_backward"),
    "cholesky_checked_each_time": Expected(
        "waiting: linalg.cholesky reads its error code on the CPU in each time step (24 waits a step: a copy of info and a synchronisation)",
        cause=r"cholesky|linalg|wait|sync|item|info|check", place="factor = torch.linalg.cholesky(spread)",
        owner=r"cholesky|linalg|wait|is_nonzero|item",
        remedy="torch.linalg.cholesky_ex(check_errors=False)", fix=r"cholesky_ex|check_errors|without.*check|later|once",
        gain="a fifth to a half", forbidden=r"cholesky.*(wait|sync|cholesky_ex|check)",
        told="cause: cholesky waits for the GPU to check errors. fix: cholesky_ex. owner: aten::linalg_cholesky at that line; waits",
        partly="cause: waits (item, nonzero) in each time step without cholesky; or launch-bound. fix: CUDA graph. owner: waits"),
    "ensemble_member_by_member": Expected(
        "launch overhead: 16 small models run one after the other (about 16 x 9 tiny kernels forward, as many backward), while the GPU idles",
        cause=r"loop|launch|tiny|small|CPU-bound|16|times", place="losses = [F.mse_loss(member(x), y) for member in members]",
        owner=r"members?|linear|addmm|loop|forward|step|optimizer|ensemble",
        remedy="stack the weights and use vmap or bmm", fix=r"vmap|bmm|stack|batch|CUDA graph|compile|at once",
        gain="half or more", forbidden=r"loop.*member|16 (equal|same) (models|products)",
        told="cause: equal small models one after the other, launch-bound. fix: one batched call (vmap/bmm). owner: that line or Member; launches",
        partly="cause: launch-bound with tiny kernels. fix: CUDA graph/compile. owner: step, backward"),
    "metadata_in_tensor_subclass": Expected(
        "host code: each operation passes __torch_function__ of a tensor subclass that carries units (about 10 us of Python for each of 120 "
        "operations); "
        "launches come too slowly",
        cause=r"__torch_function__|Python|subclass|CPU-bound|launch|host|dispatch", place="def __torch_function__",
        owner=r"__torch_function__|Quantity|Python|launch|step",
        remedy="compute on plain tensors and check units outside", fix=r"plain|subclass|outside|compile|CUDA graph|__torch_function__|unwrap",
        gain="a third or more", forbidden=r"__torch_function__|subclass",
        told="cause: Python of the subclass for each operation. fix: plain tensors inside. owner: __torch_function__ (Quantity); CPU-bound",
        partly="cause: CPU-bound or launch-bound without the subclass. fix: CUDA graph, compile. owner: step"),
    "fields_cloned_each_substep": Expected(
        "memory: positions and momenta are cloned in each of 6 substeps, twice (18 clones of 100 MB a step), although nobody needs the old ones",
        cause=r"clone|cop(y|ies)|Memcpy", place="place, momentum = place.clone(), momentum.clone()",
        owner=r"clone|copy_|Memcpy|drift|leapfrog|force",
        remedy="leave out the clones; work in place", fix=r"in.?place|without|remove|avoid|leave out|only once",
        gain="a third", forbidden=r"clone.*(remove|avoid|leave)",
        told="cause: clones of large tensors, so many a step. fix: leave out. owner: aten::clone at its line; copies GPU to GPU, so many bytes",
        partly="cause: copies GPU to GPU named without clone. fix: fuse, compile. owner: memcpy DtoD or elementwise kernels"),
    # data.py
    "pad_mask_asks_for_the_longest": Expected(
        "waiting: the pad mask is as long as the largest of the lengths, which lie on the GPU: arange reads it and waits for the encoder, "
        "and the host's work after it (some ms) is no longer done meanwhile",
        cause=r"arange|max|item|_local_scalar_dense|wait|sync", place="at = torch.arange(longest, device=lengths.device)",
        owner=r"pad_mask|arange|item|_local_scalar_dense|wait",
        remedy="take the length of the padded batch, which the CPU knows", fix=r"CPU|host|shape|size|keep|known|overlap|later|before",
        gain="a quarter to a half", forbidden=r"pad_mask|arange.*(wait|item)|item.*(wait|arange)",
        told="cause: a wait for the GPU in pad_mask (arange of a number on the GPU). fix: a length that the CPU knows (shape). owner: that line; "
             "waits for "
             "the GPU, so many ms a step",
        partly="cause: a wait before the host's work, without the line; or host work that the GPU waits for. fix: overlap. owner: item, next_batch"),
    "resampling_kernel_made_each_call": Expected(
        "launch overhead: the same resampling filter is made by about 20 small operations at each of 4 calls a step",
        cause=r"constants?|same|again|launch|tiny|small|times", place="def filter_for(device, old, new)",
        owner=r"filter_for|resample|sinc|arange|cos|sin|launch|tiny",
        remedy="make the filter once and keep it", fix=r"once|keep|cache|buffer|reuse|outside",
        gain="half or more", forbidden=r"(same|equal) constants|filter.*(again|once)",
        told="cause: the filter (constants) is made again at each call. fix: once. owner: filter_for / its line; launches of tiny kernels",
        partly="cause: launch-bound, tiny kernels. fix: CUDA graph/compile. owner: elementwise operations"),
    "features_copied_per_edge": Expected(
        "copying: features are taken per edge on the CPU and copied (84 MB a step, each row 8 times), instead of per node (10 MB)",
        cause=r"cop(y|ies)|HtoD|index|gather|CPU|MB|bytes", place="messages = table[nodes[source]].to(s.device)",
        owner=r"aten::(index|to|copy_|_to_copy)|Memcpy|HtoD|fetch",
        remedy="copy the rows of nodes once, index by edges on the GPU", fix=r"on the GPU|once|unique|after|fewer|pin|smaller",
        gain="most", forbidden=r"(8\d|90) MB|per edge",
        told="cause: gather on the CPU and copy of 84 MB hold the step (rows repeat). fix: copy unique rows, index on the GPU. owner: that line; "
             "copying to GPU and host gather",
        partly="cause: pageable copy, or CPU index alone. fix: pinned memory, workers. owner: aten::to / aten::index"),
    "one_thread_left_for_host_work": Expected(
        "others (CPU threads): host work on tensors (a resize of 8 pictures) runs with one thread, because set_num_threads(1) is left; "
        "the GPU idles meanwhile",
        cause=r"thread|CPU|host|upsampl|interpolat|idle", place="torch.set_num_threads(1)",
        owner=r"upsampl|interpolat|prepare|CPU|aten::",
        remedy="let it use the cores, or do it on the GPU or in workers", fix=r"thread|cores|on the GPU|worker|DataLoader|overlap",
        gain="half or more (16 cores)", forbidden=r"one thread|set_num_threads",
        told="cause: CPU operations in prepare hold the step (one thread). fix: more threads, or the GPU/workers. owner: prepare / aten::upsample "
             "on the CPU",
        partly="cause: GPU idles for the CPU, without the operation. fix: general overlap. owner: the step, the copy"),
    "memory_asked_of_a_shell": Expected(
        "others (process): a shell is started in each step to ask for this process's memory (milliseconds in subprocess; the GPU idles)",
        cause=r"subprocess|shell|process|fork|Python|host|idle", place="subprocess.run(...)",
        owner=r"subprocess|log_memory|poll|posix_spawn|fork|run|Python",
        remedy="read /proc/self/statm (or psutil), and less often", fix=r"/proc|psutil|less often|thread|outside|every|without|resource",
        gain="half", forbidden=r"subprocess",
        told="cause: subprocess in log_memory blocks the step. fix: without a process, or less often. owner: subprocess.run / log_memory; host code",
        partly="cause: GPU idles for Python, without place. fix: log less. owner: step"),
    "history_shifted_each_step": Expected(
        "memory: a window of 4096 measurements of 32,768 sensors is shifted by one with torch.cat each step (537 MB read and written), to drop "
        "one and add one",
        cause=r"cat\b|cop(y|ies)|shift|roll", place="history = torch.cat([history[1:], measured[None]])",
        owner=r"aten::cat|Cat|remember|copy",
        remedy="a ring buffer: write one row in place", fix=r"in.?place|ring|preallocat|buffer|index|without.*cat",
        gain="half or more", forbidden=r"aten::cat|shift",
        told="cause: cat copies the whole window each step. fix: ring buffer/in place. owner: aten::cat at that line; bytes moved on the GPU",
        partly="cause: aten::cat holds so much. fix: preallocate. owner: cat kernel without line"),
    "replay_list_stacked_to_sample": Expected(
        "memory: the whole replay memory (a list of 1000 tensors) is stacked to take 64 of them (aten::stack of 1000: host time and 113 MB copied)",
        cause=r"stack|cat\b|list|copy|launch|host", place="frames = torch.stack(memory)[chosen]",
        owner=r"stack|cat|sample|unsqueeze",
        remedy="keep the memory as one tensor and index it, or stack only the chosen", fix=r"preallocat|one tensor|index|only|chosen|first|keep",
        gain="half or more", forbidden=r"aten::(stack|cat).*1,?000",
        told="cause: stacking all to take few. fix: one tensor, or stack only those. owner: aten::stack/cat at that line",
        partly="cause: aten::cat/stack holds so much, without that few are used. fix: preallocate. owner: kernels, host"),
    # traps.py
    "log_probs_in_chunks": trap(
        "log-probs of a large vocabulary are taken in 8 chunks to save memory; each chunk fills the GPU",
        r"loop.*(batch|one call|stack|at once)|launch.bound|CPU-bound|chunk.*larger"),
    "orbits_in_float64": trap(
        "orbits over long times need float64, and all is float64 on purpose; the GPU has full units for it",
        r"by accident|accident|unintended"),
    "pinned_slot_reused": trap(
        "the pinned buffer is written again only after its event, which has long happened: the wait is nothing",
        r"(Event)?[sS]ynchroni[sz]e.*(remove|hold|cost)|pageable|not overlap"),
    "python_hidden_behind_the_gpu": trap(
        "2 ms of Python per step run while the GPU works off its queue: leaving it out changes nothing",
        r"Python.*(hold|delay|idle)|GPU (idles|waits) for|CPU-bound"),
    "pages_gathered_for_attention": trap(
        "the pages lie scattered, in a pool for each layer, and differ each step: the gather is what paged attention does without a kernel of its "
        "own; "
        "padded length is the same for all",
        r"(index_select|gather|index).*(once|before the loop|again|cache)|padding"),
}
