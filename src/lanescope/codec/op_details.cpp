#include "lanescope/codec/op_details.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "lanescope/codec/json_text.h"

namespace lanescope::codec {
namespace {

void append_json_string(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out->append(escape);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

// A double as torch writes it: whole numbers below 1e10 end in a point, others have 17 digits.
void append_real(double value, std::string* out) {
  char text[40];
  const bool whole = std::isfinite(value) && std::fabs(value) < 1e10 && std::trunc(value) == value;
  std::snprintf(text, sizeof text, whole ? "%.0f." : "%.17g", value);
  out->append(text);
}

class Reader {
 public:
  Reader(std::string_view bytes, OpDetails* out) : bytes_(bytes), out_(out) {}

  bool read_all() {
    bool any_input = false;
    if (!bytes_.empty() && static_cast<DetailTag>(bytes_[0]) == DetailTag::kStack) {
      take_tag();
      const std::uint64_t node = take_number();
      ok_ = ok_ && node <= std::numeric_limits<std::uint32_t>::max();
      if (ok_) out_->stack = static_cast<std::uint32_t>(node);
    }
    while (ok_ && !bytes_.empty()) {
      const DetailTag tag = take_tag();
      if (tag == DetailTag::kKeywords) {
        read_keywords();
        break;
      }
      for (std::string* list : lists()) list->append(any_input ? ", " : "[");
      any_input = true;
      read_input(tag);
    }
    if (any_input) {
      for (std::string* list : lists()) list->push_back(']');
    }
    return ok_;
  }

  bool read_stack_node(StackNode* out) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (take_tag() != DetailTag::kStackNode) return false;
    const std::uint64_t frame = take_number(), caller = take_number();
    if (!ok_ || !bytes_.empty() || frame > kMost || caller > kMost) return false;
    *out = {static_cast<std::uint32_t>(frame), static_cast<std::uint32_t>(caller)};
    return true;
  }

  bool read_sample_node(SampleNode* out) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (take_tag() != DetailTag::kSampleNode) return false;
    const std::uint64_t function = take_number(), line = take_number(), caller = take_number();
    if (!ok_ || !bytes_.empty() || function > kMost || line > kMost || caller > kMost) return false;
    *out = {static_cast<std::uint32_t>(function), static_cast<std::uint32_t>(line),
            static_cast<std::uint32_t>(caller)};
    return true;
  }

 private:
  std::vector<std::string*> lists() {
    return {&out_->input_dims, &out_->input_types, &out_->input_strides, &out_->concrete_inputs};
  }

  void read_input(DetailTag tag) {
    std::string dims = "[]", strides = "[]", concrete;
    std::string_view type;
    switch (tag) {
      case DetailTag::kOther:
        break;
      case DetailTag::kTensor:
        type = take_text();
        dims = take_extent();
        strides = take_extent();
        break;
      case DetailTag::kTensorList:
        type = "TensorList";
        read_tensor_list(&dims, &strides);
        break;
      case DetailTag::kScalarList:
        type = "ScalarList";
        read_scalar_list(&concrete);
        break;
      default:
        type = "Scalar";
        append_scalar(tag, &concrete);
    }
    out_->input_dims += dims;
    out_->input_strides += strides;
    append_json_string(type, &out_->input_types);
    append_json_string(concrete, &out_->concrete_inputs);
  }

  void read_tensor_list(std::string* dims, std::string* strides) {
    const std::uint64_t length = take_number();
    if (length > kMaxListLength) return;
    dims->pop_back();
    strides->pop_back();
    for (std::uint64_t i = 0; ok_ && i < length; ++i) {
      if (i != 0) {
        dims->append(", ");
        strides->append(", ");
      }
      dims->append(take_extent());
      strides->append(take_extent());
    }
    dims->push_back(']');
    strides->push_back(']');
  }

  void read_scalar_list(std::string* concrete) {
    const std::uint64_t length = take_number();
    concrete->push_back('[');
    for (std::uint64_t i = 0; ok_ && i < length; ++i) {
      if (i != 0) concrete->append(", ");
      append_scalar(take_tag(), concrete);
    }
    concrete->push_back(']');
  }

  void append_scalar(DetailTag tag, std::string* out) {
    switch (tag) {
      case DetailTag::kInteger:
        out->append(std::to_string(take_zigzag()));
        break;
      case DetailTag::kReal:
        append_real(take_real(), out);
        break;
      case DetailTag::kTrue:
        out->append("True");
        break;
      case DetailTag::kFalse:
        out->append("False");
        break;
      case DetailTag::kText:
        out->append(take_text());
        break;
      default:
        ok_ = false;
    }
  }

  void read_keywords() {
    while (ok_ && !bytes_.empty()) {
      DetailKeyword keyword;
      keyword.key = valid_utf8(take_text());
      read_value(&keyword);
      if (ok_) out_->keywords.push_back(std::move(keyword));
    }
  }

  void read_value(DetailKeyword* keyword) {
    switch (const DetailTag tag = take_tag(); tag) {
      case DetailTag::kInteger:
        keyword->kind = DetailKeyword::Kind::kInteger;
        keyword->integer = take_zigzag();
        break;
      case DetailTag::kUnsigned:
        keyword->kind = DetailKeyword::Kind::kUnsigned;
        keyword->integer = static_cast<std::int64_t>(take_number());
        break;
      case DetailTag::kReal:
        keyword->kind = DetailKeyword::Kind::kReal;
        keyword->real = take_real();
        break;
      case DetailTag::kTrue:
      case DetailTag::kFalse:
        keyword->kind = DetailKeyword::Kind::kBoolean;
        keyword->integer = tag == DetailTag::kTrue;
        break;
      case DetailTag::kText:
        keyword->text = valid_utf8(take_text());
        break;
      case DetailTag::kTextList:
        keyword->kind = DetailKeyword::Kind::kJson;
        read_text_list(&keyword->text);
        break;
      default:
        ok_ = false;
    }
  }

  void read_text_list(std::string* out) {
    const std::uint64_t length = take_number();
    out->push_back('[');
    for (std::uint64_t i = 0; ok_ && i < length; ++i) {
      if (i != 0) out->append(", ");
      append_json_string(take_text(), out);
    }
    out->push_back(']');
  }

  std::string take_extent() {
    std::string text = "[";
    const std::uint64_t rank = take_number();
    for (std::uint64_t i = 0; ok_ && i < rank; ++i) {
      if (i != 0) text.append(", ");
      text.append(std::to_string(take_zigzag()));
    }
    text.push_back(']');
    return text;
  }

  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  DetailTag take_tag() {
    const std::string_view byte = take(1);
    return byte.empty() ? DetailTag{} : static_cast<DetailTag>(byte[0]);
  }
  std::string_view take_text() { return take(take_number()); }
  std::uint64_t take_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      value |= static_cast<std::uint64_t>(byte[0] & 0x7f) << shift;
      if ((byte[0] & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t take_zigzag() {
    const std::uint64_t value = take_number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  double take_real() {
    double value = 0;
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::string_view bytes_;
  OpDetails* out_;
  bool ok_ = true;
};

}  // namespace

bool decode_op_details(std::string_view bytes, OpDetails* out) {
  return Reader(bytes, out).read_all();
}

bool decode_stack_node(std::string_view bytes, StackNode* out) {
  OpDetails unused;
  return Reader(bytes, &unused).read_stack_node(out);
}

bool decode_sample_node(std::string_view bytes, SampleNode* out) {
  OpDetails unused;
  return Reader(bytes, &unused).read_sample_node(out);
}

}  // namespace lanescope::codec
