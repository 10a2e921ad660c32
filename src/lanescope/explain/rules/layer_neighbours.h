// What operators around a layer's call say about it, for rows of the table of costly operators.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Of scores for each position, [batch, positions, classes], of 2^20 elements or more, that a linear layer or a product makes, or that
// an operator takes right after it. False: apart from operators that work on each position alone, only one call takes them, and it takes a
// quarter of the positions or fewer (select, slice, narrow, index_select, index with lists). True also if sizes are not recorded.
bool is_read_at_many_positions(const Facts& facts, SliceId op);
// Of layer_norm: it does not copy, or its input is no sum.
bool takes_contiguous_input(const Facts& facts, SliceId op);
// Of instance_norm. False: it computes statistics in float32, repeats a weight and a bias for each sample, and neither averages running
// statistics nor casts its input. Only then group_norm was faster in each of 12 measurements.
bool is_other_than_affine_float_norm(const Facts& facts, SliceId op);
// Of batch_norm. True: it does not follow a linear layer or a convolution that adds a bias, its kernels compute statistics, or the
// trace trains.
bool cannot_be_folded(const Facts& facts, SliceId op);
// Of batch_norm. True: it follows neither a linear layer nor a convolution, with or without a bias; or the next operator does not work on
// each element; or its kernels compute statistics; or the trace trains.
bool cannot_join_activation(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
