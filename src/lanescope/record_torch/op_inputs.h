// Packs the arguments of an operator (shapes, types, strides, small values, keywords) with
// codec/op_details.h into a buffer on the stack. Each distinct sequence of bytes is kept once.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Throws only when
// out of memory.
#pragma once
#include <ATen/record_function.h>

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "lanescope/codec/op_details.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope::record_torch {

using Extent = std::span<const int64_t>;

// Nested tensors and symbolic sizes have no sizes to show; torch.profiler leaves them
// empty as well.
inline bool has_plain_sizes(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_nested() &&
         !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}
inline Extent sizes_of(const at::Tensor& tensor) {
  return {tensor.sizes().data(), tensor.sizes().size()};
}
inline Extent strides_of(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided) return {};
  return {tensor.strides().data(), tensor.strides().size()};
}

inline void encode_scalar(const c10::IValue& value, codec::OpDetailsWriter& out) {
  if (value.isInt()) return out.integer(value.toInt());
  if (value.isDouble()) return out.real(value.toDouble());
  if (value.isBool()) return out.boolean(value.toBool());
  std::ostringstream text;  // complex and symbolic numbers, by torch's own printer
  text << value;
  out.string(text.str());
}

inline void encode_tensor_list(const c10::IValue& value, codec::OpDetailsWriter& out) {
  const auto list = value.toListRef();
  for (const c10::IValue& item : list) {
    if (!has_plain_sizes(item.toTensor())) return out.other();
  }
  out.tensor_list(list.size());
  if (list.size() > codec::kMaxListLength) return;
  for (const c10::IValue& item : list)
    out.list_tensor(sizes_of(item.toTensor()), strides_of(item.toTensor()));
}

inline void encode_input(const c10::IValue& value, codec::OpDetailsWriter& out) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!has_plain_sizes(tensor)) return out.other();
    const auto type = tensor.dtype().name();
    return out.tensor({type.data(), type.size()}, sizes_of(tensor), strides_of(tensor));
  }
  if (value.isScalar()) return encode_scalar(value, out);
  if (value.isTensorList()) return encode_tensor_list(value, out);
  if (!value.isList()) return out.other();
  const auto list = value.toListRef();
  if (list.size() > codec::kMaxListLength || (!list.empty() && !list[0].isScalar()))
    return out.other();
  out.scalar_list(list.size());
  for (const c10::IValue& item : list) encode_scalar(item, out);
}

inline void encode_keyword(const std::string& key, const c10::IValue& value,
                           codec::OpDetailsWriter& out) {
  const bool is_list = value.isList();
  if (is_list) {
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isString()) return;
    }
  } else if (!value.isInt() && !value.isDouble() && !value.isBool() && !value.isString()) {
    return;  // torch.profiler has no form for other kinds either
  }
  out.key(key);
  if (value.isString()) return out.string(value.toStringRef());
  if (!is_list) return encode_scalar(value, out);
  out.text_list(value.toListRef().size());
  for (const c10::IValue& item : value.toListRef()) out.text(item.toStringRef());
}

inline void encode_inputs(const at::RecordFunction& fn, codec::OpDetailsWriter& out) {
  for (const c10::IValue& input : fn.inputs()) {
    char* const mark = out.mark();
    try {
      encode_input(input, out);
      if (!out.overflowed()) continue;
    } catch (...) {  // a tensor subclass that cannot give its sizes
    }
    out.undo(mark);
    out.other();
  }
}

inline std::uint32_t intern_detail(const codec::OpDetailsWriter& out) {
  const std::string_view bytes = out.bytes();
  return bytes.empty() ? 0 : record::intern_text(bytes.data(), bytes.size());
}

// The id of the call's details (arguments and stack); 0: none.
inline std::uint32_t detail_of(const at::RecordFunction& fn, std::uint32_t stack) {
  char buffer[codec::kMaxOpDetailsBytes];
  codec::OpDetailsWriter out(buffer, sizeof buffer);
  if (stack != 0) out.stack(stack);
  const char* const first = out.mark();
  encode_inputs(fn, out);
  const auto keywords = fn.kwinputs();
  if (!keywords.empty()) out.keywords();
  for (const auto& [key, value] : keywords) encode_keyword(key, value, out);
  if (out.mark() == first) return stack;
  const std::uint32_t detail = intern_detail(out);
  return detail != 0 ? detail : stack;
}

}  // namespace lanescope::record_torch
