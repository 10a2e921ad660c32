// Which calls the rows of the table of costly operators are for, by what runs around them and inside.
#pragma once
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Not in a frame of torch.nn.utils.parametrize, or frames are not recorded. O(slices of the thread).
bool is_outside_parametrization(const Facts& facts, SliceId op);

// The trace has a backward pass or an optimizer's step.
bool is_in_training(const Facts& facts, SliceId op);

// Of a call that joins tensors: at most two kernels join them, which is up to 128 each, or one takes 10 us or more.
bool joins_few_or_large(const Facts& facts, SliceId op);

// In a range Optimizer.step, or not.
bool is_in_optimizer(const Facts& facts, SliceId op);
bool is_outside_optimizer(const Facts& facts, SliceId op);
// In no autograd node of a product of matrices (SparseAddmmBackward0, MmBackward0, ...).
bool is_outside_backward_of_product(const Facts& facts, SliceId op);
// In no optimizer, or in the first steady step, in which an optimizer may make its state.
bool is_no_later_state(const Facts& facts, SliceId op);
// Repeats by a tensor of counts, which picks rows by index; or is a part of such a call.
bool repeats_by_counts(const Facts& facts, SliceId op);

// The call before it on the thread is no lookup, or its table has more than a quarter of the rows that are
// multiplied; or sizes are not recorded.
bool follows_no_repeating_lookup(const Facts& facts, SliceId op);

// No expand() before it repeated its rows eight times or more.
bool follows_no_expand(const Facts& facts, SliceId op);
// No other convolution in the trace is oneDNN's, or the call may be the GPU's.
bool runs_without_onednn(const Facts& facts, SliceId op);
// An operator on sparse tensors runs in it.
bool multiplies_sparse(const Facts& facts, SliceId op);
// No affine_grid before it on the thread made a grid of its grid's size.
bool has_other_grid(const Facts& facts, SliceId op);
// The same; or the matrices of that grid were made from angles.
bool has_grid_of_its_own(const Facts& facts, SliceId op);
// A cosine and a sine were computed before it on the thread: its matrices turn pictures, which no flip or slice can do.
bool turns_by_angles(const Facts& facts, SliceId op);
// Of distances: the next call does not take argmin of them, or a later one takes a tensor of that shape, too; or they are
// not those of p = 2.
bool is_not_only_nearest(const Facts& facts, SliceId op);
// Of distances: the next call does not read their diagonal, or a later one takes a tensor of that shape, too.
bool is_read_whole(const Facts& facts, SliceId op);
// Of rows that are added up by index, [into, dim, index, rows]: the lookup right before that made as many rows of that width, and the
// product with a number for each row between both. Empty: there is no lookup, or the backward pass makes a gradient of these numbers.
std::vector<SliceId> lookup_before(const Facts& facts, SliceId op);
bool follows_no_lookup(const Facts& facts, SliceId op);
// The call before it on the thread is no kron.
bool follows_no_kron(const Facts& facts, SliceId op);
// No one_hot before it made a tensor of its input's shape.
bool follows_no_one_hot(const Facts& facts, SliceId op);

// The call before it on the thread did not make a diagonal matrix that is one of its inputs.
bool follows_no_diagonal(const Facts& facts, SliceId op);
// The next product on the thread does not multiply its result by so few columns that the other order would need less
// than half of the multiplications.
bool is_no_detour(const Facts& facts, SliceId op);
// Just before, its target was not filled with zeros and scattered with one index per row.
bool has_other_target(const Facts& facts, SliceId op);

// The next call on the thread is no sum or mean of its result over words: all dimensions of the index but the last stay.
bool is_not_added_up(const Facts& facts, SliceId op);
// The next call does not take argmax of its result, or a later one takes a tensor of that shape, too.
bool is_not_only_ranked(const Facts& facts, SliceId op);
// No later gather takes an eighth or less of its result, or another operator takes a tensor of that shape, too.
bool is_not_only_gathered(const Facts& facts, SliceId op);
// The next call does not read the diagonal alone of the square matrix that it makes, or a later one takes that matrix, too.
bool is_not_only_traced(const Facts& facts, SliceId op);
// No clone and no copy_ in it.
bool copies_nothing_inside(const Facts& facts, SliceId op);
// The steps have GPU work.
bool has_gpu_work(const Facts& facts, SliceId op);
// Not called by torch.quantile or nanquantile.
bool is_outside_quantile(const Facts& facts, SliceId op);
// Operators of its name run fewer than 16 times in a steady step on average.
bool is_called_rarely(const Facts& facts, SliceId op);
// The GPU waits for the CPU so much that this bounds the step.
bool is_host_bound_step(const Facts& facts, SliceId op);
// Operators of its name run fewer than 8 times in a steady step on average, or another limit bounds the step.
bool is_rare_or_not_host_bound(const Facts& facts, SliceId op);
// Not called by the backward part of x[index]; or the index is a mask, whose rows are looked for: index_select() takes none.
bool is_no_backward_of_numbers(const Facts& facts, SliceId op);

// In a node of autograd: no line of the program calls it.
bool is_in_backward_node(const Facts& facts, SliceId op);

// Not in the backward pass of an interpolation that deterministic algorithms take apart. There they are known to be on: they fill
// all new memory (a child aten::fill_ of nine tenths of aten::empty or more).
bool is_no_deterministic_interpolation(const Facts& facts, SliceId op);

// True: after a convolution and operators that work on each element alone, no slice with a step along a dimension of the
// picture takes all that is used; or sizes are not recorded.
bool is_not_sliced_in_steps(const Facts& facts, SliceId op);
// The same for the backward part of a convolution and its gradient.
bool has_whole_gradient(const Facts& facts, SliceId op);

// The next operator on the thread that takes a tensor of the sorted shape reads more than a quarter of it. False: it cuts
// out few elements, or the trace does not show how many.
bool is_used_whole(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
