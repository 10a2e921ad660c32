#include "lanescope/explain/rules/operator_advice_rows.h"

#include <array>

#include "lanescope/explain/rules/operator_fits.h"

namespace lanescope::explain::rules {

namespace {

// Where the advice of each row is documented.
constexpr char kIndexing[] = "https://docs.pytorch.org/docs/stable/tensor_view.html";
constexpr char kLinalg[] = "https://docs.pytorch.org/docs/stable/linalg.html";
constexpr char kCdist[] = "https://docs.pytorch.org/docs/stable/generated/torch.cdist.html";
constexpr char kInverse[] = "https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html";
constexpr char kPseudoinverse[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.linalg.pinv.html";
constexpr char kTorch[] = "https://docs.pytorch.org/docs/stable/torch.html";
constexpr char kParametrize[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.cached.html";
constexpr char kEmbedding[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html";
constexpr char kLstm[] = "https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html";
constexpr char kIndexAdd[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html";
constexpr char kAttention[] =
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.nn.functional.scaled_dot_product_attention.html";
constexpr char kCufft[] = "https://docs.nvidia.com/cuda/cufft/index.html#accuracy-and-performance";
constexpr char kKron[] = "https://docs.pytorch.org/docs/stable/generated/torch.kron.html";
constexpr char kBincount[] = "https://docs.pytorch.org/docs/stable/generated/torch.bincount.html";
constexpr char kPinned[] = "https://docs.pytorch.org/docs/stable/data.html#memory-pinning";
constexpr char kDeterministic[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html";
constexpr char kSparse[] = "https://docs.pytorch.org/docs/stable/sparse.html";
constexpr char kConv2d[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html";
constexpr char kCosine[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html";
constexpr char kBackends[] = "https://docs.pytorch.org/docs/stable/backends.html";
constexpr char kOptimizers[] = "https://docs.pytorch.org/docs/stable/optim.html";
constexpr char kFlatten[] = "https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNBase.html";
constexpr char kLinear[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear.html";
constexpr char kConv1d[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv1d.html";
constexpr char kBilinearPage[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.Bilinear.html";
constexpr char kCrossEntropy[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html";
constexpr char kMatmul[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html";
constexpr char kRepeats[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html";

constexpr char kEmbeddingBag[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.EmbeddingBag.html";
constexpr char kFft[] = "https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html";
constexpr char kEinsumPage[] = "https://docs.pytorch.org/docs/stable/generated/torch.einsum.html";
constexpr char kIndexSelect[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.index_select.html";
constexpr char kArgmax[] = "https://docs.pytorch.org/docs/stable/generated/torch.argmax.html";

constexpr char kWholeSpectrum[] =
    "makes the whole spectrum of real numbers, half of which repeats the other";
constexpr char kHalfSpectrum[] = "Use torch.fft.rfft, which makes one half; irfft takes it back";
constexpr char kHalfSpectrumMore[] =
    "rfft does half of the work and writes half of the bytes; rfft2 and rfftn do the same in more "
    "dimensions";

constexpr char kClassesApart[] = "reads classes that lie far apart in memory";
constexpr char kClassesLast[] = "Put classes last: F.cross_entropy(x.flatten(0, 1), y.flatten())";
constexpr char kClassesLastMore[] =
    "a loss over [batch, classes, time] goes through memory in strides for each element; the "
    "logits as a model makes them, [batch, time, classes], need no transpose";

constexpr char kBilinear[] = "multiplies for one output feature after the other";
constexpr char kEinsum[] = "Use one product: torch.einsum(\"bi,oij,bj->bo\", x1, weight, x2)";
constexpr char kEinsumMore[] =
    "nn.Bilinear loops over its output features, forward and backward; einsum makes a product of "
    "all of them, and a batched one with the second input";

constexpr char kCells[] = "does one time step; a Python loop calls it for each";
constexpr char kWholeLstm[] =
    "If all inputs are known ahead: nn.LSTM or nn.GRU over the whole sequence";
constexpr char kWholeLstmMore[] =
    "use nn.LSTM or nn.GRU: cuDNN runs the whole sequence in a few launches. A cell that changes "
    "its input by its own output needs a CUDA graph or torch.compile";
constexpr char kWholeRnn[] = "If all inputs are known ahead: nn.RNN over the whole sequence";
constexpr char kWholeRnnMore[] =
    "use nn.RNN, which takes the whole sequence in one call. A cell that changes its input by its "
    "own output needs a CUDA graph or torch.compile";
constexpr char kSelects[] = "searches each row with one block, however long the row is";
constexpr char kTopk[] = "Use torch.topk, torch.sort or a histogram: they use the whole GPU";
constexpr char kTopkMore[] =
    "for few long rows use torch.topk or torch.sort, which spread a row over the GPU; or reduce "
    "the "
    "row first";
constexpr char kWeightNorm[] = "computes the normalised weight again at every access";
constexpr char kMatrixOfWeight[] = "makes the exponential of a matrix";
constexpr char kKronProduct[] = "takes part in a product with kron(A, B)";
constexpr char kByFactors[] =
    "Multiply by factors: kron(A, B) @ x is (A @ x.view(a, b) @ B.T).flatten()";
constexpr char kByFactorsMore[] =
    "with a and b for the columns of A and of B: two small products instead of a matrix of all "
    "pairs, which is written and read again";
constexpr char kFloatAttention[] = "runs in float32, where flash attention cannot run";
constexpr char kHalfAttention[] =
    "Give attention bfloat16 or float16 (autocast does); it sums in float32";
constexpr char kHalfAttentionMore[] =
    "do not cast queries, keys and values to float32 before it; in a model of float32 "
    "torch.autocast casts them for attention and products";
constexpr char kCached[] = "Compute the weight once: with torch.nn.utils.parametrize.cached()";
constexpr char kCachedMore[] =
    "wrap the loop in torch.nn.utils.parametrize.cached(); after training, remove_parametrizations "
    "keeps the plain weight";
constexpr char kPins[] = "copies the data into new pinned memory while the loop waits";
constexpr char kPinOnce[] = "Pin once, before the loop, or in DataLoader(pin_memory=True)";
constexpr char kPinOnceMore[] =
    "pin the data once and use the buffer again, or let DataLoader(pin_memory=True) pin in its own "
    "thread";
constexpr char kFactorises[] = "factorises matrices, mostly one after another";

constexpr char kSmallMatrix[] = "works on one small matrix; a Python loop calls it for each";
constexpr char kStackMatrices[] = "Stack the matrices: one call over the whole batch";
constexpr char kStackMatricesMore[] =
    "torch.stack the matrices: torch.linalg's functions take a batch in one call, and inv_ex, "
    "solve_ex and cholesky_ex do not wait for the GPU to check the result";

constexpr char kLargePrime[] =
    "transforms a length with a prime factor above 127, which takes several times as long";
constexpr char kSmallFactors[] = "Pad to a length whose factors are 2, 3, 5 and 7, such as 2^n";
constexpr char kSmallFactorsMore[] =
    "pass n= with a length whose only factors are 2, 3, 5 and 7: for a convolution any length that "
    "holds the result will do; for a spectrum, padding changes the frequencies of the bins";

using analysis::TensorArguments;
constexpr char kSortsEqual[] = "sorts its indices, as use_deterministic_algorithms(True) demands";
constexpr char kNotDeterministic[] =
    "Switch use_deterministic_algorithms off where last digits may differ";
constexpr char kNotDeterministicMore[] =
    "without torch.use_deterministic_algorithms(True) index_add adds in parallel; sums may then "
    "differ in their last digits from run to run";

constexpr char kAcrossRows[] = "reads along a dimension whose elements lie far apart in memory";
constexpr char kThatDimensionLast[] =
    "Keep that dimension last: transpose the tensor once, outside of the step";
constexpr char kThatDimensionLastMore[] =
    "each element is in another cache line or sector; store the tensor with the dimension last "
    "that "
    "the operator goes along, or choose the other dimension where the model allows it";

constexpr std::array kAdvice = {
    OperatorAdvice{
        "aten::_cudnn_rnn", "Memcpy DtoD", "", 1, "copies its weights into one buffer at each call",
        "Call the RNN's flatten_parameters() after its weights are moved or changed",
        "cuDNN wants all weights of an RNN in one piece of memory; flatten_parameters() puts them "
        "there, and weights that are replaced, copied or made by a function lie elsewhere again",
        kFlatten, nullptr, nullptr, true},
    OperatorAdvice{"aten::_fft_c2c", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, transforms_large_prime},
    OperatorAdvice{"aten::_fft_c2r", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, returns_large_prime},
    OperatorAdvice{"aten::_fft_r2c", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, transforms_large_prime},
    OperatorAdvice{"aten::_index_put_impl_", "indexing_backward_kernel", "aten::index_add", 1,
                   "sorts indices to add up rows, in the backward part of x[index]",
                   "If one index takes rows: x.index_select(0, index), which needs no sort",
                   "index_select adds rows in parallel in its backward part (index_add_), in "
                   "another order from "
                   "run to run; few distinct rows wait for each other there",
                   kIndexSelect, nullptr, is_outside_index_backward},
    OperatorAdvice{
        "aten::_linalg_eigh", "", "", 1, kFactorises,
        "Factorise less often, or many equal matrices in one batched call",
        "batch matrices of one size, compute it every n steps, or choose a faster driver", kLinalg},
    OperatorAdvice{"aten::_linalg_solve_ex", "", "", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{"aten::_linalg_svd", "", "", 1, kFactorises,
                   "Factorise less often, or many equal matrices in one batched call",
                   "batch matrices of one size; choose driver=\"gesvdj\" or \"gesvda\"; for a few "
                   "components torch.svd_lowrank",
                   kLinalg},
    OperatorAdvice{"aten::_log_softmax", "", "", 1, kClassesApart, kClassesLast, kClassesLastMore,
                   kCrossEntropy, reduces_across_rows},
    OperatorAdvice{"aten::_log_softmax", "SpatialSoftMax", "", 1, kClassesApart, kClassesLast,
                   kClassesLastMore, kCrossEntropy, goes_along_inner_classes},
    OperatorAdvice{"aten::_log_softmax_backward_data", "", "", 1, kClassesApart, kClassesLast,
                   kClassesLastMore, kCrossEntropy, goes_back_across_rows},
    OperatorAdvice{"aten::_log_softmax_backward_data", "SpatialSoftMax", "", 1, kClassesApart,
                   kClassesLast, kClassesLastMore, kCrossEntropy, goes_back_along_inner_classes},
    OperatorAdvice{"aten::_pin_memory", "", "", 1, kPins, kPinOnce, kPinOnceMore, kPinned, nullptr,
                   nullptr, false, true},
    OperatorAdvice{"aten::_scaled_dot_product_efficient_attention", "_f32_", "", 1, kFloatAttention,
                   kHalfAttention, kHalfAttentionMore, kAttention, takes_float32, nullptr, true,
                   true},
    OperatorAdvice{"aten::_scaled_dot_product_efficient_attention_backward", "_f32_", "", 1,
                   kFloatAttention, kHalfAttention, kHalfAttentionMore, kAttention, takes_float32,
                   nullptr, true, true},
    OperatorAdvice{
        "aten::_slow_conv2d_forward", "", "", 1,
        "writes columns and multiplies them image by image, without cuDNN or oneDNN",
        "Switch the library on: torch.backends.cudnn.enabled or mkldnn.enabled",
        "torch takes this way where cuDNN (GPU) or oneDNN (CPU) is switched off, missing "
        "or does not take the tensors; their convolutions need no columns",
        kBackends, is_not_double},
    OperatorAdvice{"aten::_softmax", "", "", 1, kAcrossRows, kThatDimensionLast,
                   kThatDimensionLastMore, kIndexing, reduces_across_rows},
    OperatorAdvice{"aten::_softmax_backward_data", "", "", 1, kAcrossRows, kThatDimensionLast,
                   kThatDimensionLastMore, kIndexing, goes_back_across_rows},
    OperatorAdvice{"aten::_unique2", "", "", 1, "sorts all elements and waits for their number",
                   "Use torch.bincount or a table of known size where values are small integers",
                   "where values are small integers, torch.bincount(minlength=n) or scatter into a "
                   "table need no sort",
                   kTorch},
    OperatorAdvice{"aten::_weight_norm", "", "", 2, kWeightNorm, kCached, kCachedMore,
                   kParametrize},
    OperatorAdvice{"aten::_weight_norm_interface", "", "", 2, kWeightNorm, kCached, kCachedMore,
                   kParametrize},
    OperatorAdvice{"aten::bilinear", "", "", 1, kBilinear, kEinsum, kEinsumMore, kBilinearPage},
    OperatorAdvice{"aten::cdist", "", "", 1, "computes the distance of every pair of rows",
                   "If the rows stay the same: compute it once; else only pairs that are used",
                   "its time and its result grow with the product of both numbers of rows: take "
                   "candidates or a sample on one side; a large result can be made in pieces. Of "
                   "points that do not move between calls (layers, rounds) find neighbours once",
                   kCdist},
    OperatorAdvice{"aten::coalesce", "", "", 1,
                   "sorts the indices of a sparse tensor and adds up equal ones",
                   "A matrix that does not change: coalesce() it once, before the loop",
                   "a sparse tensor that is made once keeps its order, and to_sparse_csr() needs "
                   "none; coalesce() also waits for the GPU to count the indices that differ",
                   kSparse, nullptr, is_in_optimizer},
    OperatorAdvice{"aten::coalesce", "", "", 1,
                   "sorts the rows of a sparse gradient and adds up equal ones",
                   "Of a table whose rows are mostly met: nn.Embedding(sparse=False)",
                   "a dense gradient needs no sort and no wait for the number of rows; sparse ones "
                   "pay where a batch meets a small part of a large table",
                   kEmbedding, nullptr, is_outside_optimizer},
    OperatorAdvice{
        "aten::conv1d", "", "", 1, "slides a filter of hundreds of taps along its input",
        "Convolve by FFT: torch.fft.rfft of both, a product, irfft",
        "an FFT takes n log n instead of n times the taps; torchaudio's fftconvolve does "
        "it. Filters that the model learns may stay if they can be shorter",
        kConv1d, has_long_filter},
    OperatorAdvice{
        "aten::conv2d", "", "", 1, "slides one large filter over each channel",
        "If the filter is separable (a blur): two convolutions, k x 1 and 1 x k",
        "a Gaussian or box filter of k x k is a column times a row: two filters of k elements "
        "instead of k * k; for large filters that are not, torch.fft multiplies spectra",
        kConv2d, has_large_filter_per_channel},
    OperatorAdvice{"aten::convolution_backward", "", "", 1, "computes a gradient of the images",
                   "If nothing uses it: images that require no gradient, or images.detach()",
                   "the first convolution then leaves its largest gradient out; saliency maps and "
                   "attacks on a model need it, training does not",
                   kConv2d, makes_gradient_of_images},
    OperatorAdvice{"aten::cosine_similarity", "", "", 1,
                   "writes out the products of every pair of rows",
                   "Normalize both, then one product: F.normalize(a) @ F.normalize(b).T",
                   "broadcasting makes a tensor of rows x rows x width several times, forward and "
                   "backward; a product of the normalized rows makes none",
                   kCosine, compares_all_pairs},
    OperatorAdvice{"aten::cumsum", "", "", 1, kAcrossRows, kThatDimensionLast,
                   kThatDimensionLastMore, kIndexing, reduces_across_rows},
    OperatorAdvice{
        "aten::embedding", "", "", 1, "writes out rows that are only added up",
        "Use nn.EmbeddingBag (F.embedding_bag): it adds while it reads",
        "embedding_bag(mode=\"sum\", \"mean\" or \"max\") reads each row once and never stores "
        "[bags, words, width]; bags of several lengths need offsets, no padding",
        kEmbeddingBag, has_any_inputs, is_not_added_up},
    OperatorAdvice{
        "aten::embedding_dense_backward", "", "", 1,
        "fills a gradient as large as the whole table, for the rows that were looked up",
        "Use nn.Embedding(sparse=True) with an optimizer for sparse gradients",
        "nn.Embedding(sparse=True) with SGD, SparseAdam or Adagrad touches only the rows "
        "of the batch; so does a table that is split or frozen",
        kEmbedding, fills_more_rows_than_are_met},
    OperatorAdvice{
        "aten::embedding_renorm_", "", "", 1,
        "sorts the words of each lookup and scales their rows down to max_norm",
        "Leave max_norm out, or scale the table yourself every few steps",
        "nn.Embedding(max_norm=...) does this before every lookup and waits for the GPU; without "
        "it, "
        "torch.renorm(table, 2, 0, max_norm) on the whole table every few steps is one kernel",
        kEmbedding},
    OperatorAdvice{"aten::fft_fft", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::fft_fft2", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::fft_fftn", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::gru_cell", "", "aten::gru", 8, kCells, kWholeLstm, kWholeLstmMore, kLstm},
    OperatorAdvice{
        "aten::im2col", "", "", 1, "writes each window of its input out as a column",
        "Before a product with weights: F.conv2d, which needs no columns in memory",
        "F.unfold and a product are a convolution; F.conv2d does the same without writing "
        "each element once a window, forward and backward. Right as it is if the windows "
        "themselves are wanted",
        kConv2d},
    OperatorAdvice{
        "aten::index", "", "", 1, "reads from a tensor whose last dimension is spread over memory",
        "If whole rows are read: keep the tensor contiguous (x.contiguous(), once)",
        "each element of a row is in another sector of memory, of which the rest is read "
        "for nothing; right as it is if columns are read",
        kIndexing, reads_spread_rows},
    OperatorAdvice{"aten::index_add", "indexing_backward_kernel", "", 1, kSortsEqual,
                   kNotDeterministic, kNotDeterministicMore, kDeterministic},
    OperatorAdvice{
        "aten::index_add_", "", "", 1, "adds many rows into a few, where they wait for each other",
        "For few classes use a product: F.one_hot(index, n).to(x.dtype).T @ x",
        "additions into one row are atomic and run one after another; a product with the one-hot "
        "matrix (few classes), or a sort and torch.segment_reduce, adds them in parallel",
        kIndexAdd, adds_into_few_rows, nullptr, false, true},
    OperatorAdvice{
        "aten::index_put_", "indexing_backward_kernel", "aten::index_add", 1,
        "with accumulate sorts all indices and adds equal ones one after another",
        "Use index_add_ or scatter_add_ instead of index_put_(accumulate=True)",
        "index_add_ and scatter_add_ add in parallel; for few distinct indices a product "
        "with a one-hot matrix is faster still. In a backward pass: look rows up with "
        "F.embedding or index_select instead of x[indices]",
        kIndexAdd},
    OperatorAdvice{"aten::kl_div", "", "", 1,
                   "compares with a distribution that was filled in around one class",
                   "Use F.cross_entropy(logits, classes, label_smoothing=...)",
                   "cross_entropy smooths the labels itself: it needs neither the tensor of all "
                   "classes nor log_softmax and kl_div over it",
                   kCrossEntropy, has_any_inputs, has_other_target},
    OperatorAdvice{"aten::kron", "", "", 1, kKronProduct, kByFactors, kByFactorsMore, kKron},
    OperatorAdvice{"aten::kthvalue", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr,
                   nullptr, false, true},
    OperatorAdvice{"aten::linalg_cholesky_ex", "", "", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{"aten::linalg_inv_ex", "", "aten::linalg_pinv", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{"aten::linalg_inv_ex", "", "aten::linalg_pinv", 1,
                   "computes the whole inverse of a matrix",
                   "To multiply by the inverse use torch.linalg.solve(A, B)",
                   "torch.linalg.solve(A, B) is faster and more accurate than inv(A) @ B; it is "
                   "right as it is if the inverse itself is needed",
                   kInverse},
    OperatorAdvice{"aten::linalg_matrix_exp", "", "", 2, kMatrixOfWeight, kCached, kCachedMore,
                   kParametrize},
    OperatorAdvice{"aten::linalg_pinv", "", "", 1,
                   "factorises the matrix by its singular values, and waits for the GPU",
                   "To multiply by the pseudoinverse use torch.linalg.lstsq(A, B)",
                   "torch.linalg.lstsq(A, B).solution is faster and more accurate than pinv(A) @ B",
                   kPseudoinverse},
    OperatorAdvice{"aten::linear", "", "", 1, "multiplies rows that a lookup has repeated",
                   "Multiply the table first, then look rows up: fewer rows for the same result",
                   "x[index] @ w is (x @ w)[index]: the product of the table has as many rows as "
                   "the table, not as many as the lookups; its backward pass too",
                   kLinear, has_any_inputs, follows_no_repeating_lookup},
    OperatorAdvice{"aten::linear", "", "", 1, "multiplies rows that expand() has repeated",
                   "Multiply the rows once, then expand the result",
                   "expand() and then flatten() copy the same rows again and again, and each layer "
                   "after them works on all copies; expand the result of the last layer that sees "
                   "these rows alone",
                   kLinear, has_any_inputs, follows_no_expand},
    OperatorAdvice{"aten::lstm_cell", "", "aten::lstm", 8, kCells, kWholeLstm, kWholeLstmMore,
                   kLstm},
    OperatorAdvice{
        "aten::matmul", "", "", 1, "copies its matrices once for each row of another dimension",
        "Make the shared dimension the batch: torch.einsum or torch.bmm over it",
        "matmul of [batch, n, 1, k] and [n, k, m] expands the n matrices to batch * n and "
        "copies them; einsum(\"bnk,nkm->bnm\") multiplies n matrices of all batches",
        kEinsumPage, repeats_matrices, copies_nothing_inside},
    OperatorAdvice{"aten::matmul", "", "", 1, "multiplies by a diagonal matrix",
                   "Scale rows or columns instead: d[:, None] * W, or W * d",
                   "a product with diag(d) reads and multiplies n times as many elements, nearly "
                   "all of them zero",
                   kMatmul, has_any_inputs, follows_no_diagonal},
    OperatorAdvice{"aten::matmul", "", "", 1,
                   "makes a large matrix that is only multiplied by few columns",
                   "Multiply by the few columns first: A @ (B @ x) instead of (A @ B) @ x",
                   "the result is the same, up to rounding, and the product of both large matrices "
                   "is never made; torch.linalg.multi_dot chooses the order itself",
                   kMatmul, has_any_inputs, is_no_detour},
    OperatorAdvice{"aten::matmul", "", "", 1, kKronProduct, kByFactors, kByFactorsMore, kKron,
                   has_any_inputs, follows_no_kron},
    OperatorAdvice{"aten::matmul", "", "", 2, "multiplies by a large square matrix",
                   "If it is mostly zeros (a graph's adjacency): to_sparse_csr(), or index_add_",
                   "a product with a dense n x n matrix reads and multiplies all n * n elements; a "
                   "sparse one, or index_add_ over edges, only those that are not zero. Right as "
                   "it is if most of them are not",
                   kSparse, multiplies_by_square, multiplies_sparse},
    OperatorAdvice{"aten::median", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr, nullptr,
                   false, true},
    OperatorAdvice{"aten::mode", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr, nullptr,
                   false, true},
    OperatorAdvice{
        "aten::one_hot", "", "", 1, "makes a matrix with a column for each class",
        "For a lookup use F.embedding(index, table), to add up rows index_add_",
        "a product of a one-hot matrix and a table is a lookup, F.embedding(index, table); "
        "with the matrix transposed it is a sum by class, index_add_; losses take class "
        "indices",
        kEmbedding, has_many_classes},
    OperatorAdvice{"aten::pin_memory", "", "", 1, kPins, kPinOnce, kPinOnceMore, kPinned, nullptr,
                   nullptr, false, true},
    OperatorAdvice{"aten::randperm", "", "", 1, "makes a random key for each element and sorts all",
                   "Use torch.randint for a few indices, or one permutation an epoch",
                   "to draw some indices use torch.randint; a permutation of everything is needed "
                   "once an epoch",
                   kTorch},
    OperatorAdvice{
        // instance_norm repeats its own weights.
        "aten::repeat", "", "aten::instance_norm", 1, "copies its input as often as it repeats it",
        "Use expand() or broadcasting, which repeat without copying",
        "expand() and broadcasting read the same memory again; only what writes into the "
        "result needs copies",
        kTorch},
    OperatorAdvice{
        "aten::repeat_interleave", "", "", 1, "copies its input as often as it repeats it",
        "Repeat without a copy: expand(), or enable_gqa=True in attention",
        "scaled_dot_product_attention(enable_gqa=True) shares key and value heads without "
        "copies; elsewhere expand() or broadcasting",
        kAttention, has_any_inputs, repeats_by_counts},
    OperatorAdvice{"aten::repeat_interleave", "compute_cuda_kernel", "", 1,
                   "waits for the sum of its counts",
                   "Pass the sum where it is known: repeat_interleave(x, counts, output_size=n)",
                   "the size of the result is the sum of the counts, which the CPU waits for; with "
                   "output_size= it does not",
                   kRepeats, lacks_output_size},
    OperatorAdvice{"aten::rnn_relu_cell", "", "aten::rnn_relu", 8, kCells, kWholeRnn, kWholeRnnMore,
                   kLstm},
    OperatorAdvice{"aten::rnn_tanh_cell", "", "aten::rnn_tanh", 8, kCells, kWholeRnn, kWholeRnnMore,
                   kLstm},
    OperatorAdvice{"aten::softmax", "", "", 1,
                   "is only read by argmax, which gives the same without",
                   "Take argmax of the scores themselves: softmax keeps their order",
                   "the probabilities themselves are not used; topk and comparisons of scores need "
                   "no softmax either",
                   kArgmax, has_any_inputs, is_not_only_ranked},
    OperatorAdvice{"aten::sort", "", "aten::topk", 1, "sorts all elements of each row",
                   "If only the largest are used: torch.topk(x, k)",
                   "torch.topk(x, k) finds the k largest without sorting all; keep an order that "
                   "does not change",
                   kTorch, nullptr, is_used_whole},
    OperatorAdvice{"aten::sum", "", "", 1, "adds up one-hot tensors of 64-bit integers",
                   "Count with torch.bincount(target * classes + prediction, minlength=...)",
                   "one number for each element and class is written and read again for each sum; "
                   "bincount reads the indices only, and its table has all sums and overlaps",
                   kBincount, adds_up_whole_numbers, follows_no_one_hot},
    OperatorAdvice{"aten::zeros_like", "", "", 8, "makes the state of the optimizer in every step",
                   "Make the optimizer once, before the loop: a new one has lost its averages",
                   "an optimizer fills its state with zeros in its first step; in later ones only "
                   "if it was made again, or its state was cleared",
                   kOptimizers, has_any_inputs, is_no_later_state},
};

}  // namespace

std::span<const OperatorAdvice> operator_advice_rows() { return kAdvice; }

}  // namespace lanescope::explain::rules
