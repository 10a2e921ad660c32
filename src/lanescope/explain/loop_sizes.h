// How the shapes differ between the rounds of a loop whose rounds have equal names.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "lanescope/explain/owners.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// `calls`: `rounds` rounds of `round_size` calls each, one after the other. Empty: fewer than eight
// rounds, no recorded shapes, a backward pass, shapes that differ in more than one dimension, or
// shapes that differ by less than a fifth and do not grow evenly. O(calls), and the texts of one
// call of each round.
SizeChange size_change(const Trace& trace, std::span<const SliceId> calls, std::uint32_t rounds,
                       std::uint32_t round_size);

// An operator of a model's layers: a product, a norm or a convolution.
bool is_layer_operator(std::string_view op);

// A product, norm or convolution of eight rows or more, or of unknown size: a layer of a model rather than one
// sample.
bool is_large_product(const Trace& trace, SliceId call);

}  // namespace lanescope::explain
