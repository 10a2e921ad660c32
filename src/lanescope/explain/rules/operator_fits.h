// Which calls the rows of the table of costly operators are for, by their recorded inputs.
#pragma once
#include "lanescope/analysis/tensor_arguments.h"

namespace lanescope::explain::rules {

// One matrix that fills a small part of a GPU.
bool is_small_matrix(const analysis::TensorArguments& inputs);
// More classes than a product with the one-hot matrix is good for, or a number that is not recorded.
bool has_many_classes(const analysis::TensorArguments& inputs);
// [into, dim, index, source]: hundreds of rows for each of a few.
bool adds_into_few_rows(const analysis::TensorArguments& inputs);
// [table, ...]: rows of 16 to 64 bytes, of which torch copies each with a block of threads.
bool reads_narrow_rows(const analysis::TensorArguments& inputs);
// In a row of the last dimension, each element is in another 32-byte sector of memory.
bool reads_spread_rows(const analysis::TensorArguments& inputs);
// [self, dim, ...]: reduces along a dimension whose elements are 32 bytes apart or more, while the elements of
// another dimension are adjacent in memory.
bool reduces_across_rows(const analysis::TensorArguments& inputs);
// The same for three dimensions or more: torch copies transposed matrices first.
bool reduces_across_rows_of_batches(const analysis::TensorArguments& inputs);
// [input, dims, ...]: along one of its dimensions.
bool transforms_large_prime(const analysis::TensorArguments& inputs);
// The same for [gradient, result, dim, ...].
bool goes_back_across_rows(const analysis::TensorArguments& inputs);
// Goes along 256 elements or more of a dimension that is not the last of three or more: [self, dim, ...].
bool goes_along_inner_classes(const analysis::TensorArguments& inputs);
// The same for [gradient, result, dim, ...].
bool goes_back_along_inner_classes(const analysis::TensorArguments& inputs);
// [input, dims, normalization, length of the result].
bool returns_large_prime(const analysis::TensorArguments& inputs);
// Two tensors whose rows are compared with all rows of the other, not with one.
bool compares_all_pairs(const analysis::TensorArguments& inputs);
// Two tensors of unequal shapes, or their shapes are not recorded.
bool has_unequal_sizes_or_none(const analysis::TensorArguments& inputs);
// [gradient, indices, rows, ...]: the table has more rows than are looked up, or sizes are not recorded.
bool fills_more_rows_than_are_met(const analysis::TensorArguments& inputs);
// [input, counts, dim, length of the result]: the length is not given.
bool lacks_output_size(const analysis::TensorArguments& inputs);
// [input, weight, bias, stride, padding, dilation, groups]: a filter of 9 x 9 or more for each channel alone.
bool has_large_filter_per_channel(const analysis::TensorArguments& inputs);
// [input, weight, bias, stride, ...]: 256 taps or more, step by step.
bool has_long_filter(const analysis::TensorArguments& inputs);
// [input, n, dim, norm] of a floating-point type that is not complex.
bool takes_real_numbers(const analysis::TensorArguments& inputs);
// [matrices, size, ...] of affine_grid_generator: a single matrix.
bool makes_one_grid(const analysis::TensorArguments& inputs);
// [images, grid, ...] of grid_sampler: a single image, with a grid of rows and columns.
bool samples_one_image(const analysis::TensorArguments& inputs);
// Batches of several matrices, where one side is repeated eight times or more to fit the other.
bool repeats_matrices(const analysis::TensorArguments& inputs);
// bmm of a few rows at a time with a matrix that expand() repeats (a stride of 0), 64 times or more.
bool repeats_one_weight(const analysis::TensorArguments& inputs);
// Backward of a convolution: [gradient, input, weight, ..., mask]: makes the gradients of weight and input, and the
// input has four channels or fewer.
bool makes_gradient_of_images(const analysis::TensorArguments& inputs);
// Four dimensions of float32.
bool takes_float32(const analysis::TensorArguments& inputs);
// [n, n] x [n, few]: 4,096 rows or more, 32 columns or more, and at most an eighth as many as rows.
bool multiplies_by_square(const analysis::TensorArguments& inputs);
// A tensor of 64-bit integers with three dimensions or more.
bool adds_up_whole_numbers(const analysis::TensorArguments& inputs);
bool is_not_double(const analysis::TensorArguments& inputs);
// [table, indices, values]: values are added into rows of the table. Atomic additions (index_add_) of as many are faster than a sort of
// their indices: rows of 16 numbers or fewer, or 12.8 million numbers or fewer in all. True where the inputs were not recorded.
bool adds_up_few_numbers(const analysis::TensorArguments& inputs);
// The same, where the inputs were recorded, and whole rows of the table are meant: index_select() takes no others.
bool adds_up_few_rows(const analysis::TensorArguments& inputs);
bool lacks_inputs(const analysis::TensorArguments& inputs);  // they were not recorded
// For rows whose operator's name alone proves nothing: advice_for_call() looks at each call.
bool has_any_inputs(const analysis::TensorArguments& inputs);

}  // namespace lanescope::explain::rules
