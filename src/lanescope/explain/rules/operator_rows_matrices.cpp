#include "lanescope/explain/rules/operator_rows_matrices.h"

#include <array>

#include "lanescope/explain/rules/operator_fits.h"
#include "lanescope/explain/rules/operator_neighbours.h"
#include "lanescope/explain/rules/operator_row_texts.h"

namespace lanescope::explain::rules {

namespace {

constexpr char kWholeSpectrum[] =
    "makes the whole spectrum of real numbers, half of which repeats the other";
constexpr char kHalfSpectrum[] = "Use torch.fft.rfft, which makes one half; irfft takes it back";
constexpr char kHalfSpectrumMore[] =
    "rfft does half of the work and writes half of the bytes; rfft2 and rfftn do the same in more "
    "dimensions";
constexpr char kBilinear[] = "multiplies for one output feature after the other";
constexpr char kEinsum[] = "Use one product: torch.einsum(\"bi,oij,bj->bo\", x1, weight, x2)";
constexpr char kEinsumMore[] =
    "nn.Bilinear loops over its output features, forward and backward; einsum makes a product of "
    "all of them, and a batched one with the second input";
constexpr char kWeightNorm[] = "computes the normalised weight again at every access";
constexpr char kMadeWeight[] = "makes the weight of a parametrized module, again at each access";
constexpr char kMatrixOfWeight[] = "makes the exponential of a matrix";
constexpr char kKronProduct[] = "takes part in a product with kron(A, B)";
constexpr char kByFactors[] =
    "Multiply by factors: kron(A, B) @ x is (A @ x.view(a, b) @ B.T).flatten()";
constexpr char kByFactorsMore[] =
    "with a and b for the columns of A and of B: two small products instead of a matrix of all "
    "pairs, which is written and read again";
constexpr char kOnlyTraced[] =
    "makes a square matrix of which the next operator reads the diagonal";
constexpr char kSumOfProduct[] = "If nothing else reads it: (A * B.T).sum() is the trace of A @ B";
constexpr char kSumOfProductMore[] =
    "(A * B.T).sum(1) is the diagonal: element i is row i of A times column i of B, n products of "
    "a row and a column instead of n * n, and no matrix is written";
constexpr char kCached[] = "Compute the weight once: with torch.nn.utils.parametrize.cached()";
constexpr char kCachedMore[] =
    "wrap the loop in torch.nn.utils.parametrize.cached(); after training, remove_parametrizations "
    "keeps the plain weight";
constexpr char kPlainWeight[] =
    "Before inference: parametrize.remove_parametrizations or remove_weight_norm";
constexpr char kPlainWeightMore[] =
    "torch.nn.utils.parametrize.remove_parametrizations(module, \"weight\") after "
    "parametrizations, "
    "torch.nn.utils.remove_weight_norm(module) after weight_norm: the plain weight stays. Between "
    "evaluations of a model that trains on: with torch.nn.utils.parametrize.cached()";
constexpr char kFactorises[] = "factorises matrices, mostly one after another";
constexpr char kSmallMatrix[] = "works on one small matrix; a Python loop calls it for each";
constexpr char kStackMatrices[] =
    "Independent ones: torch.stack, one call; the same one again: make it once";
constexpr char kStackMatricesMore[] =
    "torch.stack matrices of which none needs the result of another: torch.linalg's functions take "
    "a batch in one call, and inv_ex, solve_ex and cholesky_ex do not wait for the GPU to check "
    "the result";
constexpr char kLargePrime[] =
    "transforms a length with a prime factor above 127, which takes several times as long";
constexpr char kSmallFactors[] = "Pad to a length whose factors are 2, 3, 5 and 7, such as 2^n";
constexpr char kSmallFactorsMore[] =
    "pass n= with a length whose only factors are 2, 3, 5 and 7: for a convolution any length that "
    "holds the result will do; for a spectrum, padding changes the frequencies of the bins";

constexpr std::array kMatrixOperatorRows = {
    OperatorAdvice{"aten::bmm", "", "", 1,
                   "multiplies row by row with one weight that expand() repeats",
                   "One product of all rows: F.linear(x, weight), or x @ W without expand()",
                   "each small product reads the weight again; F.linear and @ take inputs of any "
                   "number of dimensions and multiply all their rows at once",
                   kLinear, repeats_one_weight, nullptr, true, false, "slow-gemm"},
    OperatorAdvice{"aten::_fft_c2c", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, transforms_large_prime},
    OperatorAdvice{"aten::_fft_c2r", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, returns_large_prime},
    OperatorAdvice{"aten::_fft_r2c", "", "", 1, kLargePrime, kSmallFactors, kSmallFactorsMore,
                   kCufft, transforms_large_prime},
    OperatorAdvice{
        "aten::_linalg_eigh", "", "", 1, kFactorises,
        "Factorise less often, or many equal matrices in one batched call",
        "batch matrices of one size, compute it every n steps, or choose a faster driver", kLinalg},
    OperatorAdvice{"aten::_linalg_solve_ex", "", "", 2, kMadeWeight, kCached, kCachedMore,
                   kParametrize, has_any_inputs, is_outside_parametrization},
    OperatorAdvice{"aten::_linalg_solve_ex", "", "", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{"aten::_linalg_svd", "", "", 1, kFactorises,
                   "Factorise less often, or many equal matrices in one batched call",
                   "batch matrices of one size; choose driver=\"gesvdj\" or \"gesvda\"; for a few "
                   "components torch.svd_lowrank",
                   kLinalg},
    OperatorAdvice{"aten::_weight_norm", "", "", 2, kWeightNorm, kPlainWeight, kPlainWeightMore,
                   kParametrize, has_any_inputs, is_in_training},
    OperatorAdvice{"aten::_weight_norm", "", "", 2, kWeightNorm, kCached, kCachedMore,
                   kParametrize},
    OperatorAdvice{"aten::_weight_norm_interface", "", "", 2, kWeightNorm, kPlainWeight,
                   kPlainWeightMore, kParametrize, has_any_inputs, is_in_training},
    OperatorAdvice{"aten::_weight_norm_interface", "", "", 2, kWeightNorm, kCached, kCachedMore,
                   kParametrize},
    OperatorAdvice{"aten::bilinear", "", "", 1, kBilinear, kEinsum, kEinsumMore, kBilinearPage},
    OperatorAdvice{
        "aten::cdist", "", "", 1, "computes distances of which argmin takes the nearest",
        "For argmin: torch.addmm((b * b).sum(1), a, b.T, alpha=-2), without roots",
        "|a|^2 is the same for all rows of b, and a root keeps the order: one product "
        "does, without the passes that square, add and take roots of all pairs. Measured on "
        "an H200 with 200,000 rows and 256: 0.46 instead of 0.83 ms",
        kCdist, has_any_inputs, is_not_only_nearest},
    OperatorAdvice{"aten::cdist", "", "", 1,
                   "computes the distance of every pair, of which the diagonal is read",
                   "Compare row by row: F.pairwise_distance(a, b), or (a - b).norm(dim=-1)",
                   "n distances instead of n * n", kCdist, has_any_inputs, is_read_whole},
    OperatorAdvice{"aten::cdist", "", "", 1, "computes the distance of every pair of rows",
                   "If rows stay the same: once; else candidates or a sample of one side",
                   "its time and its result grow with the product of both numbers of rows: take "
                   "candidates or a sample on one side; a large result can be made in pieces. Of "
                   "points that do not move between calls (layers, rounds) find neighbours once",
                   kCdist},
    OperatorAdvice{"aten::cosine_similarity", "", "", 1,
                   "writes out the products of every pair of rows",
                   "Normalize both, then one product: F.normalize(a) @ F.normalize(b).T",
                   "broadcasting makes a tensor of rows x rows x width several times, forward and "
                   "backward; a product of the normalized rows makes none",
                   kCosine, compares_all_pairs},
    OperatorAdvice{
        .op = "aten::cosine_similarity",
        .kernel = "",
        .unless_in = "",
        .least_calls = 1,
        .meaning = "computes the norms of both inputs in each call",
        .action = "If one stays the same: F.normalize it once, then one product with it",
        .more =
            "unit = F.normalize(matrix, dim=1) once, then F.normalize(x, dim=1) @ unit.T: norms "
            "and quotients of all rows are not computed again. Measured on an H200, 32 queries "
            "over 300,000 rows of 384 numbers: 53.9 instead of 92.6 ms one by one, 1.9 ms in "
            "one call for all. Where both inputs are new in each call, leave it",
        .source = kCosine,
        .fits = has_unequal_sizes_or_none,
        .unless = is_in_training,
        .takes_all_inputs = true},
    OperatorAdvice{"aten::fft_fft", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::fft_fft2", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::fft_fftn", "", "", 1, kWholeSpectrum, kHalfSpectrum, kHalfSpectrumMore,
                   kFft, takes_real_numbers},
    OperatorAdvice{"aten::kron", "", "", 1, kKronProduct, kByFactors, kByFactorsMore, kKron},
    OperatorAdvice{"aten::linalg_cholesky_ex", "", "", 2, kMadeWeight, kCached, kCachedMore,
                   kParametrize, has_any_inputs, is_outside_parametrization},
    OperatorAdvice{"aten::linalg_cholesky_ex", "", "", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{"aten::linalg_householder_product", "", "", 2, kMadeWeight, kCached, kCachedMore,
                   kParametrize, has_any_inputs, is_outside_parametrization},
    OperatorAdvice{"aten::linalg_inv_ex", "", "", 2, kMadeWeight, kCached, kCachedMore,
                   kParametrize, has_any_inputs, is_outside_parametrization},
    OperatorAdvice{"aten::linalg_inv_ex", "", "aten::linalg_pinv", 8, kSmallMatrix, kStackMatrices,
                   kStackMatricesMore, kLinalg, is_small_matrix},
    OperatorAdvice{
        "aten::linalg_inv_ex", "", "aten::linalg_pinv", 1, "computes the whole inverse of a matrix",
        "To multiply by the inverse use torch.linalg.solve(A, B)",
        "torch.linalg.solve(A, B) is faster and more accurate than inv(A) @ B; inv is "
        "right if the inverse itself is needed",
        kInverse, nullptr, nullptr, false, false, nullptr, false, "aten::linalg_lu_factor_ex"},
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
    OperatorAdvice{"aten::matmul", "", "", 1, kOnlyTraced, kSumOfProduct, kSumOfProductMore, kTrace,
                   has_any_inputs, is_not_only_traced},
    OperatorAdvice{"aten::matmul", "", "", 1, kKronProduct, kByFactors, kByFactorsMore, kKron,
                   has_any_inputs, follows_no_kron},
    OperatorAdvice{"aten::matmul", "", "", 2, "multiplies by a large square matrix",
                   "If it is mostly zeros (a graph's adjacency): to_sparse_csr(), or index_add_",
                   "a product with a dense n x n matrix reads and multiplies all n * n elements; a "
                   "sparse one, or index_add_ over edges, only those that are not zero. No change "
                   "is needed if most of them are not zero",
                   kSparse, multiplies_by_square, multiplies_sparse},
    OperatorAdvice{"aten::mm", "", "aten::", 1, kOnlyTraced, kSumOfProduct, kSumOfProductMore,
                   kTrace, has_any_inputs, is_not_only_traced},
};

}  // namespace

std::span<const OperatorAdvice> matrix_operator_rows() { return kMatrixOperatorRows; }

}  // namespace lanescope::explain::rules
