// Products of a few rows, as when a model makes one word at a time.
#pragma once
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Nearly all products of matrices in the steady steps work on at most eight rows, and take a third of the GPU's time or more. They
// read all of their weights, so their time hardly depends on the rows. Goes by recorded shapes, else by the kernels' names (gemv; tiles
// of eight columns, which is how cuBLAS calls rows). False where the steps train: gradients have few rows for other reasons. O(work).
bool products_have_few_rows(const Facts& facts);

}  // namespace lanescope::explain::rules
