#include "lanescope/explain/rules/operator_rows_lookups.h"

#include <array>

#include "lanescope/explain/rules/many_tables.h"
#include "lanescope/explain/rules/operator_fits.h"
#include "lanescope/explain/rules/operator_neighbours.h"
#include "lanescope/explain/rules/operator_row_texts.h"

namespace lanescope::explain::rules {

namespace {

constexpr char kSelects[] = "searches each row with one block, however long the row is";
constexpr char kTopk[] = "Use torch.topk, torch.sort or a histogram: they use the whole GPU";
constexpr char kTopkMore[] =
    "for few long rows use torch.topk or torch.sort, which spread a row over the GPU; or reduce "
    "the row first";
constexpr char kSortsToAddRows[] = "sorts indices to add up rows, in the backward part of x[index]";
constexpr char kIndexSelectMore[] =
    "index_select adds rows in parallel in its backward part (index_add_), in another order from "
    "run to run. Where rows are wide and many, x[index] is faster: measured on an H200 with 1.5 "
    "million rows, index_select took 0.16 instead of 0.56 ms for rows of 8 numbers and 1.6 instead "
    "of 0.75 ms for 128; with 100,000 rows it was faster up to 128 numbers";
constexpr char kSortsEqual[] = "sorts its indices, as use_deterministic_algorithms(True) demands";
constexpr char kNotDeterministic[] =
    "Switch use_deterministic_algorithms off where last digits may differ";
constexpr char kNotDeterministicMore[] =
    "without torch.use_deterministic_algorithms(True) index_add adds in parallel; sums may then "
    "differ in their last digits from run to run";

constexpr char kSortsInInterpolation[] =
    "sorts pixels in the backward pass of an interpolation, as use_deterministic_algorithms(True) "
    "demands";
constexpr char kNotDeterministicInterpolation[] =
    "with torch.use_deterministic_algorithms(True), F.interpolate runs as lookups by index, whose "
    "backward pass sorts them, and all new memory is filled. Where last digits may differ from run "
    "to run, leave it off, or switch it off around the interpolation and its backward pass";

constexpr char kResamples[] =
    "computes a place for each pixel, where grid_sample then interpolates";
constexpr char kByWholePixels[] =
    "For flips, crops and shifts: flip, slices, roll; else keep the grid";
constexpr char kByWholePixelsMore[] =
    "x.flip(3), x[..., top:bottom, left:right] and torch.roll move pixels without a grid, and "
    "torch.where chooses pictures. A grid that does not change can be made once. Other "
    "rotations need the grid; in 16 bits it moves half of the bytes";

constexpr char kResamplesOne[] = "resamples one image; a Python loop calls it for each";
constexpr char kAllImages[] =
    "For a batch: stack images and matrices, one affine_grid and grid_sample";
constexpr char kAllImagesMore[] =
    "affine_grid and grid_sample take a batch, with a matrix of its own for each image: draw "
    "angles, shifts and scales of all images as one tensor";

constexpr char kAddsLookup[] = "adds up rows that a lookup has just written out";
constexpr char kSparseProduct[] =
    "If edges stay the same: a sparse matrix in CSR form, A @ x, does both";
constexpr char kSparseProductMore[] =
    "torch.sparse_csr_tensor once, with a value for each edge, and A @ x (torch.sparse.mm) in each "
    "layer: no tensor of all edges is written, read and added up atomically. Measured on an H200 "
    "with 1.5 million edges of 100,000 nodes and a width of 128: 0.22 instead of 2.35 ms, with the "
    "backward pass 1.0 instead of 3.5 ms";

constexpr char kConverts[] = "sorts and converts a sparse matrix";
constexpr char kConvertOnce[] = "If the matrix stays the same: convert it once, before the loop";
constexpr char kConvertOnceMore[] =
    "keep A and A.t().to_sparse_csr(), both made where the graph is loaded. If only values change, "
    "keep the indices and the order: torch.sparse_csr_tensor(crow, col, values[order]) sorts "
    "nothing";

constexpr char kFillsTableEachTime[] =
    "fills a gradient as large as the whole table in each of its calls";
constexpr char kOneLookup[] =
    "Look up all rows in one call: one gradient; or sparse=True, SparseAdam";
constexpr char kOneLookupMore[] =
    "collect the rows of all inputs, look them up in one call, and split the result; bags of "
    "several inputs are one call with offsets. With sparse=True only the rows that were looked up "
    "are made (SGD, SparseAdam or Adagrad)";

constexpr char kLaunchesEachTime[] = "launches many small kernels for each lookup";
constexpr char kJoinTables[] =
    "Join tables into one, add offsets to the indices: one lookup for all";
constexpr char kJoinTablesMore[] =
    "one nn.Embedding(sum(sizes), width), and table(indices + offsets) with the first row of each "
    "table as its offset: one sort, one fill and one sum for all. Several lookups in one table: "
    "join their indices and split the result. Measured on an H200 with 26 tables: 4.9 instead of "
    "13.3 ms a step; sparse=True with SparseAdam took 18.2 ms";

constexpr char kFillsManyTables[] =
    "fills a gradient as large as the whole table, for each of many tables";
constexpr char kOneSparseTable[] =
    "One table of all, with offsets; sparse=True if a batch meets few rows";
constexpr char kOneSparseTableMore[] =
    "one nn.Embedding(sum(sizes), width, sparse=True), and table(indices + offsets) with the first "
    "row of each table as its offset. torch.optim.SparseAdam (or SGD, Adagrad) then touches only "
    "the rows of the batch, so its result differs from Adam's. Measured on an H200 with 26 tables "
    "of 13 million rows in all: 6.4 instead of 23.4 ms a step. SparseAdam for the 26 tables took "
    "29.4 ms: it launches many small kernels for each table";

constexpr char kNarrowRows[] = "takes rows of 16 to 64 bytes, each with a block of threads";
constexpr char kTakeAlong[] =
    "Use torch.take_along_dim(x, i[:, None], 0), or index the transposed x";
constexpr char kTakeAlongMore[] =
    "the kernel for whole rows takes as long for 16 bytes as for 1,024. Measured on an H200 with "
    "torch 2.11, 1.3 million rows: 16 bytes 0.81 ms, with take_along_dim 0.05, from the transposed "
    "matrix 0.04; 64 bytes 0.81, 0.18 and 0.15; 256 bytes gain little. What is looked up together "
    "can also be kept in one wide row";
constexpr char kTakeAlongPage[] =
    "https://docs.pytorch.org/docs/stable/generated/torch.take_along_dim.html";

// The row of an operator that takes rows of a table by index.
constexpr OperatorAdvice takes_narrow_rows(std::string_view op) {
  return {.op = op,
          .kernel = "vectorized_gather_kernel",
          .unless_in = "",
          .least_calls = 1,
          .meaning = kNarrowRows,
          .action = kTakeAlong,
          .more = kTakeAlongMore,
          .source = kTakeAlongPage,
          .fits = reads_narrow_rows,
          .is_kernel_only = true,
          .is_of_gpu = true};
}

// The row of an operator that makes the gradient of a table.
constexpr OperatorAdvice of_many_tables(std::string_view op, const char* source) {
  return {.op = op,
          .kernel = "",
          .unless_in = "",
          .least_calls = 8,
          .meaning = kFillsManyTables,
          .action = kOneSparseTable,
          .more = kOneSparseTableMore,
          .source = source,
          .unless = is_not_of_many_tables,
          .is_of_gpu = true};
}

// The row of an operator that adds up rows by index.
constexpr OperatorAdvice adds_up_lookup(std::string_view op) {
  return {.op = op,
          .kernel = "",
          .unless_in = "",
          .least_calls = 1,
          .meaning = kAddsLookup,
          .action = kSparseProduct,
          .more = kSparseProductMore,
          .source = kSparse,
          .fits = has_any_inputs,
          .unless = follows_no_lookup,
          .is_of_gpu = true,
          .has_backward = true,
          .spares_too = lookup_before};
}

constexpr std::array kLookupOperatorRows = {
    OperatorAdvice{"aten::_embedding_bag_dense_backward", "", "", 8, kLaunchesEachTime, kJoinTables,
                   kJoinTablesMore, kEmbeddingBag, nullptr, is_rare_or_not_host_bound},
    of_many_tables("aten::_embedding_bag_dense_backward", kEmbeddingBag),
    OperatorAdvice{"aten::_embedding_bag_dense_backward", "", "", 1, kFillsTableEachTime,
                   kOneLookup, kOneLookupMore, kEmbeddingBag, nullptr, is_called_rarely},
    OperatorAdvice{"aten::affine_grid_generator", "", "", 16, kResamplesOne, kAllImages,
                   kAllImagesMore, kAffineGrid, makes_one_grid, is_called_rarely},
    OperatorAdvice{"aten::affine_grid_generator", "", "", 1, kResamples, kByWholePixels,
                   kByWholePixelsMore, kAffineGrid, has_any_inputs, turns_by_angles},
    OperatorAdvice{"aten::grid_sampler", "", "", 16, kResamplesOne, kAllImages, kAllImagesMore,
                   kAffineGrid, samples_one_image, is_called_rarely},
    OperatorAdvice{"aten::grid_sampler", "", "", 1, kResamples, kByWholePixels, kByWholePixelsMore,
                   kAffineGrid, has_any_inputs, has_grid_of_its_own},
    OperatorAdvice{"aten::_index_put_impl_", "indexing_backward_kernel", "aten::index_add", 1,
                   kSortsToAddRows, "Use x.index_select(0, index): its backward part needs no sort",
                   kIndexSelectMore, kIndexSelect, adds_up_few_rows, is_no_backward_of_numbers},
    OperatorAdvice{"aten::_index_put_impl_", "indexing_backward_kernel", "aten::index_add", 1,
                   kSortsToAddRows,
                   "For rows of up to 16 numbers: x.index_select(0, index), which needs no sort",
                   kIndexSelectMore, kIndexSelect, lacks_inputs, is_no_backward_of_numbers},
    OperatorAdvice{"aten::_unique2", "", "", 1, "sorts all elements and waits for their number",
                   "Use torch.bincount or a table of known size where values are small integers",
                   "where values are small integers, torch.bincount(minlength=n) or scatter into a "
                   "table need no sort",
                   kTorch},
    OperatorAdvice{"aten::cat", "CatArrayBatchedCopy", "", 1, "joins hundreds of small tensors",
                   "Of stored samples: keep rows of one tensor, and take a batch by index",
                   "a memory of samples as one tensor: memory[i] = x writes a row, and "
                   "memory[indices] reads a batch in one kernel. Tensors that this step makes: "
                   "compute them in one call. No change is needed for the gradients of all "
                   "parameters in a few calls",
                   kIndexing, nullptr, joins_few_or_large},
    OperatorAdvice{"aten::coalesce", "", "", 1,
                   "sorts the indices of the transposed matrix again in each backward pass",
                   "Coalesce the transposed matrix once; multiply by it in an autograd.Function",
                   "autograd transposes a sparse matrix in the backward part of its product, and "
                   "the result is not sorted, whatever the program coalesced before; also CSR is "
                   "converted there. An autograd.Function keeps both matrices: forward A @ x, "
                   "backward At @ gradient, with At = A.t().coalesce() made once. A symmetric A "
                   "is its own transpose",
                   kSparse, nullptr, is_outside_backward_of_product},
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
    OperatorAdvice{"aten::cumsum", "", "", 1, kAcrossRows, kThatDimensionLast,
                   kThatDimensionLastMore, kIndexing, reduces_across_rows},
    OperatorAdvice{
        "aten::embedding", "", "", 1, "writes out rows that are only added up",
        "Use nn.EmbeddingBag (F.embedding_bag): it adds while it reads",
        "embedding_bag(mode=\"sum\", \"mean\" or \"max\") reads each row once and never stores "
        "[bags, words, width]; bags of several lengths need offsets, no padding",
        kEmbeddingBag, has_any_inputs, is_not_added_up},
    takes_narrow_rows("aten::embedding"),
    OperatorAdvice{"aten::embedding_dense_backward", "", "", 8, kLaunchesEachTime, kJoinTables,
                   kJoinTablesMore, kEmbedding, nullptr, is_rare_or_not_host_bound},
    of_many_tables("aten::embedding_dense_backward", kEmbedding),
    OperatorAdvice{"aten::embedding_dense_backward", "", "", 1, kFillsTableEachTime, kOneLookup,
                   kOneLookupMore, kEmbedding, fills_more_rows_than_are_met, is_called_rarely},
    OperatorAdvice{
        "aten::embedding_dense_backward", "", "", 1,
        "fills a gradient as large as the whole table, for the rows that were looked up",
        "Use nn.Embedding(sparse=True) with an optimizer for sparse gradients",
        "nn.Embedding(sparse=True) with SGD, SparseAdam or Adagrad touches only the rows "
        "of the batch; so does a table that is split or frozen",
        kEmbedding, fills_more_rows_than_are_met, is_host_bound_step},
    OperatorAdvice{
        "aten::embedding_renorm_", "", "", 1,
        "sorts the words of each lookup and scales their rows down to max_norm",
        "Leave max_norm out, or scale the table yourself every few steps",
        "nn.Embedding(max_norm=...) does this before every lookup and waits for the GPU; without "
        "it, torch.renorm(table, 2, 0, max_norm) on the whole table every few steps is one kernel",
        kEmbedding},
    OperatorAdvice{"aten::index", "", "", 1,
                   "reads from a tensor whose last dimension is spread over memory",
                   "If whole rows are read: keep the tensor contiguous (x.contiguous(), once)",
                   "each element of a row is in another sector of memory, of which the rest is "
                   "read for nothing; no change is needed if columns are read",
                   kIndexing, reads_spread_rows},
    takes_narrow_rows("aten::index"),
    OperatorAdvice{"aten::index_add", "indexing_backward_kernel", "", 1, kSortsEqual,
                   kNotDeterministic, kNotDeterministicMore, kDeterministic},
    OperatorAdvice{
        "aten::index_add_", "", "", 1, "adds many rows into a few, where they wait for each other",
        "For few classes use a product: F.one_hot(index, n).to(x.dtype).T @ x",
        "additions into one row are atomic and run one after another; a product with the one-hot "
        "matrix (few classes), or a sort and torch.segment_reduce, adds them in parallel",
        kIndexAdd, adds_into_few_rows, nullptr, false, true},
    adds_up_lookup("aten::index_add_"),
    OperatorAdvice{"aten::index_put_", "indexing_backward_kernel", "aten::index_add", 1,
                   kSortsInInterpolation, kNotDeterministic, kNotDeterministicInterpolation,
                   kDeterministic, nullptr, is_no_deterministic_interpolation},
    OperatorAdvice{
        "aten::index_put_", "indexing_backward_kernel", "aten::index_add", 1,
        "with accumulate sorts all indices and adds equal ones one after another",
        "Use index_add_ or scatter_add_ instead of index_put_(accumulate=True)",
        "index_add_ and scatter_add_ add in parallel; for few distinct indices a product "
        "with a one-hot matrix is faster still",
        kIndexAdd, nullptr, is_in_backward_node},
    takes_narrow_rows("aten::index_select"),
    OperatorAdvice{"aten::kthvalue", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr,
                   nullptr, false, true},
    OperatorAdvice{"aten::median", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr, nullptr,
                   false, true},
    OperatorAdvice{"aten::mode", "", "", 1, kSelects, kTopk, kTopkMore, kTorch, nullptr, nullptr,
                   false, true},
    OperatorAdvice{"aten::nonzero", "", "", 1,
                   "searches the whole mask for the places that are set",
                   "If sums or means follow: keep the mask, torch.where(mask, x, 0).sum()",
                   "x[mask] and torch.where(mask) list the places first; with a mask that is kept, "
                   "nothing is listed and the backward pass adds up no rows. No change is needed "
                   "if few of many places are set and much work follows",
                   kIndexing, nullptr, has_gpu_work},
    OperatorAdvice{
        "aten::one_hot", "", "", 1, "makes a matrix with a column for each class",
        "For a lookup use F.embedding(index, table), to add up rows index_add_",
        "a product of a one-hot matrix and a table is a lookup, F.embedding(index, table); "
        "with the matrix transposed it is a sum by class, index_add_; losses take class "
        "indices",
        kEmbedding, has_many_classes},
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
    adds_up_lookup("aten::scatter_add_"),
    OperatorAdvice{
        "aten::sort", "", "aten::topk", 1, "sorts all elements to find a quantile",
        "Take the quantile of a sample (x.flatten()[::100]), or every few steps",
        "torch.quantile sorts all elements; the quantile of a regular sample is close to "
        "it, and a statistic that is only logged is not needed in each step",
        kTorch, nullptr, is_outside_quantile},
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
    OperatorAdvice{"torch::autograd::CopySlices", "", "", 4,
                   "copies a whole gradient for each write into a part of a tensor",
                   "Write all parts in one call: torch.where, masked_fill, tril; or torch.stack",
                   "autograd cannot know which part a later write replaces, so x[i] = y in a loop "
                   "copies the gradient of all of x each time; one call for all parts copies once",
                   kIndexing},
    OperatorAdvice{"aten::to_sparse_bsc", "", "", 1, kConverts, kConvertOnce, kConvertOnceMore,
                   kSparse, nullptr, nullptr, false, false, "host-sync", true},
    OperatorAdvice{"aten::to_sparse_bsr", "", "", 1, kConverts, kConvertOnce, kConvertOnceMore,
                   kSparse, nullptr, nullptr, false, false, "host-sync", true},
    OperatorAdvice{"aten::to_sparse_csc", "", "", 1, kConverts, kConvertOnce, kConvertOnceMore,
                   kSparse, nullptr, nullptr, false, false, "host-sync", true},
    OperatorAdvice{"aten::to_sparse_csr", "", "", 1, kConverts, kConvertOnce, kConvertOnceMore,
                   kSparse, nullptr, nullptr, false, false, "host-sync", true},
};

}  // namespace

std::span<const OperatorAdvice> lookup_operator_rows() { return kLookupOperatorRows; }

}  // namespace lanescope::explain::rules
