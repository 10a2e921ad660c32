#include "lanescope/explain/rules/operator_rows_layers.h"

#include <array>

#include "lanescope/explain/rules/layer_neighbours.h"
#include "lanescope/explain/rules/operator_fits.h"
#include "lanescope/explain/rules/operator_neighbours.h"
#include "lanescope/explain/rules/operator_row_texts.h"

namespace lanescope::explain::rules {

namespace {

constexpr char kClassesApart[] = "reads classes that lie far apart in memory";
constexpr char kClassesLast[] = "Put classes last: F.cross_entropy(x.flatten(0, 1), y.flatten())";
constexpr char kClassesLastMore[] =
    "a loss over [batch, classes, time] goes through memory in strides for each element; the "
    "logits as a model makes them, [batch, time, classes], need no transpose";
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
constexpr char kFloatAttention[] = "runs in float32, where flash attention cannot run";
constexpr char kHalfAttention[] =
    "Give attention bfloat16 or float16 (autocast does); it sums in float32";
constexpr char kHalfAttentionMore[] =
    "do not cast queries, keys and values to float32 before it; in a model of float32 "
    "torch.autocast casts them for attention and products";
constexpr char kAllPlaces[] = "works on places that slices with a step (::2) leave out";
constexpr char kStrideOfSlice[] =
    "Give the convolution that step (stride=2): it computes only what is kept";
constexpr char kStrideOfSliceMore[] =
    "Conv2d(stride=2) gives what Conv2d() and x[:, :, ::2, ::2] give, and computes a quarter of "
    "it; its backward part needs no gradient filled with zeros. Where the convolution has a stride "
    "already, multiply it by the step";
constexpr char kPins[] = "copies the data into new pinned memory while the loop waits";
constexpr char kPinOnce[] = "Pin once, before the loop, or in DataLoader(pin_memory=True)";
constexpr char kPinOnceMore[] =
    "pin the data once and use the buffer again, or let DataLoader(pin_memory=True) pin in its own "
    "thread";

constexpr char kFixedNorm[] = "scales by fixed statistics in a pass of its own";
constexpr char kFoldNorm[] =
    "Before inference, fold it in: torch.nn.utils.fuse_conv_bn_eval(conv, bn)";
constexpr char kFoldNormMore[] =
    "in inference the scale and shift of BatchNorm do not change, so they can be a part of the "
    "weight and bias before it: fuse_conv_bn_eval of torch.nn.utils.fusion, or fuse_linear_bn_eval "
    "after a linear layer; torch.fx.experimental.optimization.fuse(model.eval()) does it for a "
    "model that torch.fx can trace. Results differ by rounding alone. Train the model that is not "
    "folded";
constexpr char kJoinNorm[] = "torch.compile the model: one kernel for the norm and the activation";
constexpr char kJoinNormMore[] =
    "in inference the scale and shift of BatchNorm do not change, so torch.compile computes them "
    "in the kernel of the activation or sum after them. Folding them into a convolution without a "
    "bias gains little: it then has a bias, which takes a pass of its own, too (a U-Net on an "
    "H200: 6.20 before, 5.94 ms after)";

constexpr char kAllPositions[] = "works on all positions, of which few are read";
constexpr char kPositionsFirst[] =
    "Take the positions first: head(hidden[:, -1]), not head(hidden)[:, -1]";
constexpr char kPositionsFirstMore[] =
    "from the last linear layer on, no position needs another one: scores, casts and softmax of "
    "the positions that are read are the same, for less work. A loss over all positions needs them "
    "all";

constexpr std::array kLayerOperatorRows = {
    OperatorAdvice{
        "aten::_cudnn_rnn", "Memcpy DtoD", "", 1, "copies its weights into one buffer at each call",
        "Call the RNN's flatten_parameters() after its weights are moved or changed",
        "cuDNN wants all weights of an RNN in one piece of memory; flatten_parameters() puts them "
        "there, and weights that are replaced, copied or made by a function lie elsewhere again",
        kFlatten, nullptr, nullptr, true},
    OperatorAdvice{"aten::_log_softmax", "", "", 1, kClassesApart, kClassesLast, kClassesLastMore,
                   kCrossEntropy, reduces_across_rows_of_batches},
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
                   true, "slow-attention"},
    OperatorAdvice{"aten::_scaled_dot_product_efficient_attention_backward", "_f32_", "", 1,
                   kFloatAttention, kHalfAttention, kHalfAttentionMore, kAttention, takes_float32,
                   nullptr, true, true, "slow-attention"},
    OperatorAdvice{
        "aten::_slow_conv2d_forward", "", "", 1,
        "writes columns and multiplies them; torch takes oneDNN for larger calls only",
        "Put more images into a call: torch then takes oneDNN for these calls, too",
        "torch takes this way for one image of up to 20,480 elements and filters up to 3 x 3, and, "
        "on one thread, for filters of 1 x 1 and fewer than 16 images (measured with torch 2.13)",
        kBackends, is_not_double, runs_without_onednn},
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
    OperatorAdvice{"aten::batch_norm", "", "", 4, kFixedNorm, kFoldNorm, kFoldNormMore, kFold,
                   has_any_inputs, cannot_be_folded, false, true},
    OperatorAdvice{"aten::batch_norm", "", "", 4, kFixedNorm, kJoinNorm, kJoinNormMore, kCompile,
                   has_any_inputs, cannot_join_activation, false, true},
    OperatorAdvice{"aten::conv1d", "", "", 1, kAllPlaces, kStrideOfSlice, kStrideOfSliceMore,
                   kConv2d, has_any_inputs, is_not_sliced_in_steps, true},
    OperatorAdvice{
        "aten::conv1d", "", "", 1, "slides a filter of hundreds of taps along its input",
        "Convolve by FFT: torch.fft.rfft of both, a product, irfft",
        "an FFT takes n log n instead of n times the taps; torchaudio's fftconvolve does "
        "it. Filters that the model learns may stay if they can be shorter",
        kConv1d, has_long_filter},
    OperatorAdvice{"aten::conv2d", "", "", 1, kAllPlaces, kStrideOfSlice, kStrideOfSliceMore,
                   kConv2d, has_any_inputs, is_not_sliced_in_steps, true},
    OperatorAdvice{
        "aten::conv2d", "", "", 1, "slides one large filter over each channel",
        "If the filter is separable (a blur): two convolutions, k x 1 and 1 x k",
        "a Gaussian or box filter of k x k is a column times a row: two filters of k elements "
        "instead of k * k; for large filters that are not, torch.fft multiplies spectra",
        kConv2d, has_large_filter_per_channel},
    OperatorAdvice{"aten::conv3d", "", "", 1, kAllPlaces, kStrideOfSlice, kStrideOfSliceMore,
                   kConv2d, has_any_inputs, is_not_sliced_in_steps, true},
    OperatorAdvice{"aten::convolution_backward", "", "", 1, kAllPlaces, kStrideOfSlice,
                   kStrideOfSliceMore, kConv2d, has_any_inputs, has_whole_gradient, true},
    OperatorAdvice{"aten::convolution_backward", "", "", 1, "computes a gradient of the images",
                   "If nothing uses it: images that require no gradient, or images.detach()",
                   "the first convolution then leaves its largest gradient out; saliency maps and "
                   "attacks on a model need it, training does not",
                   kConv2d, makes_gradient_of_images},
    OperatorAdvice{"aten::gru_cell", "", "aten::gru", 8, kCells, kWholeLstm, kWholeLstmMore, kLstm},
    OperatorAdvice{"aten::im2col", "", "", 1, "writes each window of its input out as a column",
                   "Before a product with weights: F.conv2d, which needs no columns in memory",
                   "F.unfold and a product are a convolution; F.conv2d does the same without "
                   "writing each element once a window, forward and backward. No change is needed "
                   "if the windows themselves are wanted",
                   kConv2d},
    OperatorAdvice{
        "aten::instance_norm",
        "bn_fw_tr",
        "",
        1,
        "runs as batch norm over each channel of each sample",
        "nn.GroupNorm(C, C) or F.group_norm(x, C) gives the same by another kernel",
        "instance_norm hands batch norm one sample of N x C channels, with weights repeated N "
        "times; group_norm with as many groups as channels computes the same, forward and "
        "backward, up to rounding. No change is needed if running statistics are kept "
        "(track_running_stats=True), which group_norm does not have",
        kGroupNorm,
        has_any_inputs,
        is_other_than_affine_float_norm,
        false,
        true,
        nullptr,
        false,
        {},
        true},
    OperatorAdvice{"aten::kl_div", "", "", 1,
                   "compares with smoothed labels, written out for all classes",
                   "Use F.cross_entropy(logits, classes, label_smoothing=...)",
                   "cross_entropy smooths the labels itself: it needs neither the tensor of all "
                   "classes nor log_softmax and kl_div over it",
                   kCrossEntropy, has_any_inputs, has_other_target},
    OperatorAdvice{
        "aten::layer_norm",
        "copy_kernel",
        "",
        4,
        "copies its input first, which is not contiguous",
        "Call .contiguous() once, after the transpose: adds keep its layout",
        "the norm wants rows that lie one after another, and copies a strided input each "
        "time; the result of an addition is as strided as its inputs, so that a "
        "transposed state stays transposed through all layers",
        kLayerNorm,
        has_any_inputs,
        takes_contiguous_input,
        true,
        true,
        nullptr,
        false,
        {},
        true},
    OperatorAdvice{"aten::linear", "", "", 1, kAllPositions, kPositionsFirst, kPositionsFirstMore,
                   kLinear, has_any_inputs, is_read_at_many_positions},
    OperatorAdvice{"aten::log_softmax", "", "", 1, kAllPositions, kPositionsFirst,
                   kPositionsFirstMore, kLinear, has_any_inputs, is_read_at_many_positions},
    OperatorAdvice{"aten::log_softmax", "", "", 1,
                   "writes the log-probability of each class, of which gather keeps few",
                   "The same for less: x.gather(-1, i) - x.logsumexp(-1, keepdim=True)",
                   "logsumexp reads the scores and writes one number a row; with targets as a loss "
                   "F.cross_entropy(reduction=\"none\") does both",
                   kLogSumExp, has_any_inputs, is_not_only_gathered},
    OperatorAdvice{"aten::lstm_cell", "", "aten::lstm", 8, kCells, kWholeLstm, kWholeLstmMore,
                   kLstm},
    OperatorAdvice{"aten::matmul", "", "", 1, kAllPositions, kPositionsFirst, kPositionsFirstMore,
                   kLinear, has_any_inputs, is_read_at_many_positions},
    OperatorAdvice{"aten::pin_memory", "", "", 1, kPins, kPinOnce, kPinOnceMore, kPinned, nullptr,
                   nullptr, false, true},
    OperatorAdvice{"aten::rnn_relu_cell", "", "aten::rnn_relu", 8, kCells, kWholeRnn, kWholeRnnMore,
                   kLstm},
    OperatorAdvice{"aten::rnn_tanh_cell", "", "aten::rnn_tanh", 8, kCells, kWholeRnn, kWholeRnnMore,
                   kLstm},
    OperatorAdvice{"aten::softmax", "", "", 1, "is read by argmax only, which needs no softmax",
                   "Take argmax of the scores themselves: softmax keeps their order",
                   "the probabilities themselves are not used; topk and comparisons of scores need "
                   "no softmax either",
                   kArgmax, has_any_inputs, is_not_only_ranked},
    OperatorAdvice{"aten::softmax", "", "", 1, kAllPositions, kPositionsFirst, kPositionsFirstMore,
                   kLinear, has_any_inputs, is_read_at_many_positions},
    OperatorAdvice{"aten::to", "", "", 1, kAllPositions, kPositionsFirst, kPositionsFirstMore,
                   kLinear, has_any_inputs, is_read_at_many_positions},
    OperatorAdvice{"aten::zeros_like", "", "", 8, "makes the state of the optimizer in every step",
                   "Make the optimizer once, before the loop: a new one has lost its averages",
                   "an optimizer fills its state with zeros in its first step; in later ones only "
                   "if it was made again, or its state was cleared",
                   kOptimizers, has_any_inputs, is_no_later_state},
};

}  // namespace

std::span<const OperatorAdvice> layer_operator_rows() { return kLayerOperatorRows; }

}  // namespace lanescope::explain::rules
