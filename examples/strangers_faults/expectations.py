"""What `lanescope explain` should say of each program, written down before the programs were written and before any text was read.

Of a pair: the cause, the line, the remedy that an expert would give, what he would accept as told or partly told, how much of the
bad step goes with it, and what would be false of the good twin. Of a trap: what would be false. The patterns find words; a
reader decides.
"""

from __future__ import annotations

import dataclasses
from typing import Dict


@dataclasses.dataclass(frozen=True)
class Expected:
    mechanism: str  # a sentence: who holds the time, and why
    cause: str  # pattern of owner and mechanism
    line: str  # the line of the program
    owner: str  # pattern of the place
    remedy: str  # a sentence
    fix: str  # pattern of the remedy
    gain: str  # about how much of the bad step, on a GPU
    forbidden: str  # pattern: false of the good twin
    told: str = ""  # what a reader counts as told
    partly: str = ""  # what a reader counts as partly told


def trap(why: str, forbidden: str) -> Expected:
    return Expected(why, "$^", "", "$^", "", "$^", "nothing", forbidden)


EXPECTED: Dict[str, Expected] = {
    # vision.py
    "input_gradient_left_on": Expected(
        "the images require a gradient (left from a saliency map), so the backward pass computes the first convolution's input gradient",
        cause=r"(gradient|grad).*(input|images?)|input.*grad|dgrad",
        line="images = torch.randn(...).requires_grad_()",
        owner=r"[Cc]onvolution.*[Bb]ackward|dgrad|conv",
        remedy="do not require a gradient of the images in training",
        fix=r"requires_grad|detach|input.*(need|gradient)",
        gain="a tenth to a half",
        forbidden=r"gradient (of|for) (the|its) input (is|that) (not|no|un)",
        told="the backward pass of the first convolution computes a gradient of its input that nobody uses",
        partly="the backward pass of the first convolution holds the step, or its dgrad kernel is the slow one"),
    "bias_before_batchnorm": Expected(
        "each convolution adds a bias that the batch norm takes away again: a kernel forward and a sum backward over all activations",
        cause=r"bias",
        line="nn.Conv2d(width, width, 1, bias=True)",
        owner=r"conv|add_|sum",
        remedy="bias=False in convolutions before a batch norm",
        fix=r"bias ?= ?False|without.*bias|bias",
        gain="a tenth to a fifth",
        forbidden=r"bias ?= ?False",
        told="the bias of the convolutions costs passes over memory and is useless before a batch norm",
        partly="aten::add_ below the convolutions, or the sum in their backward pass, is named with its cost"),
    "softmax_before_argmax": Expected(
        "the scores of all pixels pass through a softmax before argmax, which does not change the order",
        cause=r"softmax",
        line="scores.softmax(dim=1).argmax(dim=1)",
        owner=r"softmax",
        remedy="argmax of the scores themselves",
        fix=r"argmax.*(without|direct|score|logit)|(remove|drop|skip|need).*softmax|softmax.*(not need|order)",
        gain="a fifth to a half",
        forbidden=r"aten::_?softmax",
        told="the softmax is needless because argmax follows",
        partly="the softmax holds much of the step (with its cost), or runs along a dimension that is not the last"),
    "features_cloned_by_hooks": Expected(
        "forward hooks left on every module clone its output, and nobody reads the copies",
        cause=r"clone|hook",
        line="features[name] = output.detach().clone()",
        owner=r"clone|hook|keep",
        remedy="remove the hooks, or keep what is needed only (detach without clone)",
        fix=r"remove|hook|detach|without.*(clone|cop)|clone",
        gain="a tenth to a third: bytes copied",
        forbidden=r"aten::clone|hook",
        told="aten::clone (in a hook) copies each layer's output, at its line, and should go",
        partly="copies device to device hold so much, without who makes them"),
    "generator_not_detached": Expected(
        "the discriminator's loss runs backward through the generator too, whose gradients are thrown away",
        cause=r"backward.*(generator|twice|two|again|thrown|unused|not used)|ConvTranspose|transposed|generator",
        line="judged = discriminator(fake)",
        owner=r"backward|[Cc]onvolution[Bb]ackward",
        remedy="discriminator(fake.detach()), or generate under no_grad for that loss",
        fix=r"detach|no_grad",
        gain="a sixth to a third",
        forbidden=r"\.detach\(\)|gradients? (that )?(nobody|no one|never|are thrown)",
        told="the backward pass of the discriminator's loss goes on into the generator, or computes gradients that are set to zero unread",
        partly="two backward passes hold the step, and one of them contains the generator's backward"),
    # sequences.py
    "steps_sliced_in_a_loop": Expected(
        "x[:, t] in a loop: the backward pass of each slice fills a zero tensor of the whole sequence and adds it",
        cause=r"[Ss]elect.?[Bb]ackward|select_backward|slice.*backward|zeros?.*(whole|full|each)|aten::select",
        line="h = torch.tanh(x[:, t] + h @ weight)",
        owner=r"[Ss]elect|zero_|zeros|fill|add_",
        remedy="x.unbind(1) before the loop",
        fix=r"unbind|chunk|split",
        gain="a third or more",
        forbidden=r"SelectBackward|select_backward|unbind",
        told="the backward pass of select (SelectBackward0) fills and adds tensors of the whole input; unbind",
        partly="fills and additions in the backward pass hold the step, without the slices as their cause"),
    "graphs_for_every_length": Expected(
        "a CUDA graph is captured for each exact length; they come in turn, so nearly every step captures and instantiates one",
        cause=r"captur|instantiat|BeginCapture|GraphInstantiate",
        line="with torch.cuda.graph(graph):",
        owner=r"[Cc]aptur|[Gg]raph",
        remedy="pad to a few lengths (buckets) and capture a graph for each once",
        fix=r"bucket|pad|once|reuse|few|static|fixed",
        gain="most: host",
        forbidden=r"captures? .*(each|every) step|GraphInstantiate",
        told="CUDA graphs are captured again in the steps; pad or keep the graphs",
        partly="the host's time goes to synchronizing, collecting or allocating memory around a capture"),
    "batch_split_over_streams": Expected(
        "the batch is cut into four pieces on four streams: four times the launches, each kernel too small for the GPU",
        cause=r"launch|small|tiny|stream",
        line="with torch.cuda.stream(streams[number]):",
        owner=r"launch|stream|linear|addmm|serve",
        remedy="one batch on one stream",
        fix=r"one batch|larger batch|batch|one stream|one call|graph",
        gain="half or more",
        forbidden=r"streams .*(split|too small)|[0-9] times .*(same|equal) (work|shape)",
        told="equal small pieces of work on several streams make the launches the bottleneck; run them as one batch",
        partly="launches hold the step and the kernels are small, without the pieces"),
    "plateau_reads_the_loss": Expected(
        "ReduceLROnPlateau.step(loss) reads the loss in each step: the host waits for the GPU and cannot prepare the next batch meanwhile",
        cause=r"item|_local_scalar_dense|wait|sync",
        line="scheduler.step(loss)",
        owner=r"item|_local_scalar_dense|Plateau|scheduler",
        remedy="step the scheduler once in a while with a mean that is kept on the GPU",
        fix=r"every|once|less often|keep.*GPU|later|accumulate|remove|epoch",
        gain="a tenth to a third: preparation of words no longer overlaps",
        forbidden=r"_local_scalar_dense|aten::item",
        told="a wait for the loss in each step (aten::item, at scheduler.step) keeps CPU and GPU from overlapping",
        partly="a wait is named, without line or scheduler, or only that the GPU idles while the CPU prepares words"),
    "gradient_of_frozen_weight": Expected(
        "a custom autograd function always computes the weight's gradient, though the weight is frozen: a third of its products is wasted",
        cause=r"weight.*grad|grad.*weight|needs_input_grad|frozen|Frozen",
        line="grad.t() @ x",
        owner=r"FrozenLinear|mm|matmul|[Bb]ackward",
        remedy="compute it only if ctx.needs_input_grad[1]",
        fix=r"needs_input_grad|not need|skip|unused|frozen",
        gain="a quarter to a third",
        forbidden=r"needs_input_grad|thrown away",
        told="FrozenLinearBackward computes a gradient that nobody uses",
        partly="matrix products in the backward pass of FrozenLinear hold the step"),
    # science.py
    "derivatives_one_at_a_time": Expected(
        "each derivative asks autograd for all first derivatives anew: five backward passes through the network where one and two do",
        cause=r"backward.*(again|times|twice|repeat|equal|same)|autograd\.grad|create_graph|same (work|input)|[3-9] backward",
        line="torch.autograd.grad(u.sum(), points, create_graph=True)[0][:, axis]",
        owner=r"grad|[Bb]ackward|derivative",
        remedy="ask for the gradient once and take its columns (or forward-mode derivatives)",
        fix=r"once|one call|reuse|all .*at once|jvp|forward.mode|keep",
        gain="a third to a half",
        forbidden=r"backward .*(again|twice|repeated)",
        told="the same backward pass through the network runs several times a step and once is enough",
        partly="calls of autograd.grad or the backward pass hold the step, with their number"),
    "laplacian_by_rolls": Expected(
        "the neighbours of each cell are made by torch.roll: twelve copies of the whole field for one stencil",
        cause=r"roll",
        line="torch.roll(field, ...)",
        owner=r"roll",
        remedy="pad once and add slices (views), or a convolution, or one compiled kernel",
        fix=r"slice|view|conv|pad|compile|fus|one kernel",
        gain="a quarter to a half",
        forbidden=r"aten::roll",
        told="aten::roll copies the field many times a step; slices of a padded field, a convolution or a fused kernel do it",
        partly="aten::roll holds the step, or a chain of memory-bound kernels, without a remedy for the copies"),
    "rows_taken_by_brackets": Expected(
        "x[index] in training: its backward pass is index_put_ with accumulate, which sorts all edges; index_select adds with atomics",
        cause=r"index_put|IndexBackward|[Ss]ort|_index_put_impl_",
        line="scores[sources]",
        owner=r"index|[Ss]ort",
        remedy="x.index_select(0, index) or F.embedding or gather",
        fix=r"index_select|F\.embedding|gather|embedding|index_add",
        gain="a fifth to a half",
        forbidden=r"index_put|IndexBackward0",
        told="the backward pass of indexing sorts (index_put_ with accumulate); index_select or gather avoids it",
        partly="index_put_ or radix sorts in the backward pass are named as the holders"),
    "complex_transform_of_sound": Expected(
        "fft of real sound: it is first made complex, and half of the result is thrown away",
        cause=r"fft|FFT|complex",
        line="torch.fft.fft(frames)[..., :bins]",
        owner=r"fft|FFT",
        remedy="torch.fft.rfft (or torch.stft)",
        fix=r"rfft|real|stft|half",
        gain="a third to a half",
        forbidden=r"rfft",
        told="a complex transform of real numbers; rfft",
        partly="fft_c2c and the copy to complex hold the step"),
    # tables.py
    "bags_by_lookup_and_sum": Expected(
        "embeddings of all words of a history are written out ([users, history, width]) only to be summed",
        cause=r"embedding.*(sum|mean|reduc)|(sum|mean).*embedding|EmbeddingBag|embedding_bag",
        line="F.embedding(history, table).sum(dim=1)",
        owner=r"embedding|index_select|sum",
        remedy="nn.EmbeddingBag(mode='sum')",
        fix=r"[Ee]mbedding_?[Bb]ag",
        gain="a third to a half: bytes",
        forbidden=r"[Ee]mbedding_?[Bb]ag",
        told="the looked-up rows are written and read again for the sum; EmbeddingBag",
        partly="aten::embedding and aten::sum hold the step as memory-bound kernels"),
    "weights_copied_by_matmul": Expected(
        "matmul of [batch, critics, 1, width] with [critics, width, width] copies the weights once for each sample of the batch",
        cause=r"expand|clone|cop(y|ies)|matmul.*(broadcast|cop)|bmm",
        line="torch.matmul(h.unsqueeze(2), weight)",
        owner=r"matmul|bmm|clone|copy_|reshape",
        remedy="einsum('bed,edh->beh') or bmm over the critics",
        fix=r"einsum|bmm|baddbmm|transpose|permute|broadcast",
        gain="most",
        forbidden=r"broadcast|expanded",
        told="aten::matmul copies its broadcast operand (clone below matmul); einsum or bmm with the critics as batch",
        partly="copies or bmm below matmul hold the step, without broadcasting as their cause"),
    # host.py
    "pinned_in_the_step": Expected(
        "each batch is pinned in the step itself: the CPU copies 77 MB into pinned memory before the GPU may have them",
        cause=r"pin",
        line="clips[number].pin_memory().to(device, non_blocking=True)",
        owner=r"pin_memory|_pin_memory|copy_",
        remedy="pin once, or in the loader's thread (DataLoader(pin_memory=True))",
        fix=r"pin.*(once|loader|thread|before|ahead|outside|reuse)|DataLoader|pin_memory=True|buffer",
        gain="a third to two thirds: host",
        forbidden=r"_pin_memory|pin.*(each|every) step",
        told="pin_memory in the step costs so much; pin once or in the loader",
        partly="a copy on the CPU holds the host while the GPU idles"),
    "tensor_from_list_of_arrays": Expected(
        "torch.tensor(list of NumPy arrays) reads them number by number",
        cause=r"torch\.tensor|list|Python|tensor\(|detach_|lift_fresh|observ",
        line="torch.tensor(observations, device=device)",
        owner=r"tensor|Python|step|host|observ|act",
        remedy="torch.from_numpy(np.stack(observations))",
        fix=r"from_numpy|np\.stack|numpy\.stack|np\.array|stack",
        gain="most: host without events",
        forbidden=r"torch\.tensor",
        told="the line torch.tensor(...) holds the host; from_numpy of one stacked array",
        partly="Python holds the step before aten::to or at that line, without why"),
    "view_saved_whole": Expected(
        "torch.save of eight rows saves the whole storage behind the view: all of the batch's outputs are copied to the CPU",
        cause=r"save|Memcpy D|DtoH|Device to [Hh]ost|storage|cop(y|ies).*(CPU|host)",
        line="torch.save(outputs[:8], buffer)",
        owner=r"save|copy|Memcpy|DtoH|cpu",
        remedy="torch.save(outputs[:8].clone(), buffer)",
        fix=r"clone|view|part|fewer|less|smaller",
        gain="a third to most",
        forbidden=r"whole storage|view",
        told="the save copies the storage of the whole tensor, not the rows; clone before saving",
        partly="a pageable copy of so many bytes to the host at torch.save holds the step"),
    "decoder_in_tiles": Expected(
        "the picture is decoded in 25 overlapping tiles to save memory that is there: half as much work again, in small kernels",
        cause=r"tile|25|loop|times|small|again|equal",
        line="for top, left in tiles:",
        owner=r"conv|tile|decode",
        remedy="decode it whole (or in fewer, larger tiles)",
        fix=r"whole|larger|batch|one call|fewer|at once|tile",
        gain="a third to a half",
        forbidden=r"tiles?\b",
        told="25 equal decodings a step run in a Python loop and could be one (larger) call",
        partly="the convolutions hold the step, or small kernels in a loop, without that one call would do"),
    # traps.py
    "adversarial_images": trap(
        "adversarial training needs the gradient of the images, and a second pass of other images",
        r"requires_grad|(gradient|grad) of (the|its) input|again|use the first result|same (input|batch)"),
    "confidence_and_class": trap(
        "the softmax's probabilities are used, so it is not in vain",
        r"(remove|drop|skip|without) .*softmax|softmax .*(need|in vain)"),
    "channels_last_already": trap(
        "a convolutional network in channels_last and bfloat16, as it should be: advice on layout or number type is false",
        r"channels_last|memory_format|NHWC|layout|TF32|bfloat16|autocast"),
    "weights_cast_once": trap(
        "autocast as documented: each weight is cast once a step, which is how it works",
        r"cast.*(again|each call|every call|cache)|cache_enabled|TF32"),
}
