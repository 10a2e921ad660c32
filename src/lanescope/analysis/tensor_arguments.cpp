#include "lanescope/analysis/tensor_arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lanescope::analysis {
namespace {

constexpr TypeRow kTypes[] = {
    {"float", "f32", 4, true},
    {"double", "f64", 8, true},
    {"c10::Half", "f16", 2, true},
    {"c10::BFloat16", "bf16", 2, true},
    {"c10::Float8_e4m3fn", "f8e4m3", 1, true},
    {"c10::Float8_e4m3fnuz", "f8e4m3", 1, true},
    {"c10::Float8_e5m2", "f8e5m2", 1, true},
    {"c10::Float8_e5m2fnuz", "f8e5m2", 1, true},
    {"long int", "i64", 8, false},
    {"long", "i64", 8, false},
    {"int", "i32", 4, false},
    {"short int", "i16", 2, false},
    {"short", "i16", 2, false},
    {"signed char", "i8", 1, false},
    {"char", "i8", 1, false},
    {"unsigned char", "u8", 1, false},
    {"bool", "bool", 1, false},
    {"c10::complex<float>", "c64", 8, true},
    {"c10::complex<double>", "c128", 16, true},
};

JsonValue parse_text(std::string_view text) { return parse_json(text).value_or(JsonValue{}); }

std::optional<Tensor> tensor_from(const JsonValue& dims, const JsonValue& type) {
  auto sizes = sizes_of(dims);
  const TypeRow* const row = find_type(type.text);
  if (!sizes || !row) return std::nullopt;
  return Tensor{*std::move(sizes), std::nullopt, row};
}

}  // namespace

const TypeRow* find_type(std::string_view torch) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& each) { return each.torch == torch; });
  return row == std::end(kTypes) ? nullptr : row;
}

std::string python_type_name(std::string_view torch) {
  if (torch == "double") return "float64";
  if (torch == "float") return "float32";
  if (torch == "c10::BFloat16") return "bfloat16";
  if (torch == "c10::Half") return "float16";
  return std::string(torch.substr(torch.starts_with("c10::") ? 5 : 0));
}

std::optional<Sizes> sizes_of(const JsonValue& value) {
  if (!value.is_array()) return std::nullopt;
  Sizes sizes;
  for (const JsonValue& item : value.items) {
    if (!item.integer || *item.integer < 0) return std::nullopt;
    sizes.push_back(*item.integer);
  }
  return sizes;
}

double element_count(const Sizes& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

std::optional<Sizes> broadcast(const Sizes& left, const Sizes& right) {
  Sizes out = left.size() >= right.size() ? left : right;
  const Sizes& other = left.size() >= right.size() ? right : left;
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& size = out[out.size() - 1 - i];
    const std::int64_t with = other[other.size() - 1 - i];
    if (size != with && size != 1 && with != 1) return std::nullopt;
    size = size == 1 ? with : size;
  }
  return out;
}

std::string shape_text(const Sizes& sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

double Tensor::elements() const { return element_count(dims); }

double Tensor::stored_bytes() const {
  const auto size = static_cast<double>(type->size_bytes);
  if (!strides) return elements() * size;
  // From the first element to the last one: overlapping views (unfold) repeat elements in it.
  double differing = 1, extent = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const double stride = std::abs(static_cast<double>((*strides)[i]));
    if (dims[i] <= 0) return 0;
    if (stride != 0) differing *= static_cast<double>(dims[i]);
    extent += static_cast<double>(dims[i] - 1) * stride;
  }
  return std::min(differing, extent) * size;
}

std::int64_t Tensor::leading() const {
  if (rank() < 2) return 0;
  if (!strides) return dim(0);
  const std::int64_t row = (*strides)[rank() - 2], column = (*strides)[rank() - 1];
  if (column == 1 || dim(0) == 1) return row;
  return row == 1 || dim(1) == 1 ? column : 0;
}

struct TensorArguments::Texts {
  std::vector<std::optional<Tensor>> tensors;
  std::vector<std::string> concrete;
};

std::shared_ptr<const TensorArguments::Texts> TensorArguments::parse(const OperatorCall& call) {
  const JsonValue dims = parse_text(call.dims), types = parse_text(call.types),
                  strides = parse_text(call.strides);
  Texts texts;
  texts.tensors.reserve(dims.items.size());
  for (std::size_t i = 0; i < std::min(dims.items.size(), types.items.size()); ++i) {
    auto& tensor = texts.tensors.emplace_back(tensor_from(dims.items[i], types.items[i]));
    if (!tensor || i >= strides.items.size()) continue;
    tensor->strides = sizes_of(strides.items[i]);
    if (tensor->strides && tensor->strides->size() != tensor->rank()) tensor->strides.reset();
  }
  JsonValue concrete = parse_text(call.concrete);
  texts.concrete.reserve(concrete.items.size());
  for (JsonValue& item : concrete.items) texts.concrete.push_back(std::move(item.text));
  return std::make_shared<const Texts>(std::move(texts));
}

// Most calls of a loop have inputs like those of the round before. Keys are copies of the texts, so that a row outlives its trace.
std::shared_ptr<const TensorArguments::Texts> TensorArguments::find_recent(
    const OperatorCall& call) {
  constexpr std::size_t kRecentRows = 256, kLongestText = 1024;  // bytes
  struct Row {
    std::string dims, types, strides, concrete;
    std::shared_ptr<const Texts> texts;
  };
  // On the heap: a library that Python loads late has little room of its own in each thread.
  thread_local const auto rows = std::make_unique<std::array<Row, kRecentRows>>();
  if (std::max({call.dims.size(), call.types.size(), call.strides.size(), call.concrete.size()}) >
      kLongestText)
    return parse(call);
  // A trace has each text once, so equal texts mostly have one address.
  const std::hash<const char*> hash;
  Row& row = (*rows)[(hash(call.dims.data()) * 3 + hash(call.concrete.data())) % kRecentRows];
  if (!row.texts || row.dims != call.dims || row.types != call.types ||
      row.strides != call.strides || row.concrete != call.concrete) {
    row = {std::string(call.dims), std::string(call.types), std::string(call.strides),
           std::string(call.concrete), parse(call)};
  }
  return row.texts;
}

TensorArguments::TensorArguments(const OperatorCall& call) : texts_(find_recent(call)) {}

const Tensor* TensorArguments::tensor(std::size_t index) const& {
  const auto& tensors = texts_->tensors;
  return index < tensors.size() && tensors[index] ? &*tensors[index] : nullptr;
}

std::optional<Tensor> TensorArguments::tensor(std::size_t index) && {
  return index < texts_->tensors.size() ? texts_->tensors[index] : std::nullopt;
}

std::optional<JsonValue> TensorArguments::value(std::size_t index) const {
  if (index >= texts_->concrete.size()) return std::nullopt;
  return parse_json(texts_->concrete[index]);
}

std::optional<double> TensorArguments::number(std::size_t index) const {
  if (index >= texts_->concrete.size()) return std::nullopt;
  const std::string& text = texts_->concrete[index];
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<bool> TensorArguments::flag(std::size_t index) const {
  if (index >= texts_->concrete.size()) return std::nullopt;
  const std::string& text = texts_->concrete[index];
  if (text == "True" || text == "true" || text == "1") return true;
  if (text == "False" || text == "false" || text == "0") return false;
  return std::nullopt;
}

std::vector<bool> TensorArguments::flags(std::size_t index) const {
  std::vector<bool> values;
  if (index >= texts_->concrete.size()) return values;
  std::string_view text = texts_->concrete[index];
  if (!text.starts_with('[')) return values;
  for (std::size_t from = 0; from != std::string_view::npos && values.size() < 8;) {
    const std::size_t end = text.find(',', from);
    values.push_back(text.substr(from, end - from).find("True") != std::string_view::npos);
    from = end == std::string_view::npos ? end : end + 1;
  }
  return values;
}

std::optional<Sizes> TensorArguments::list(std::size_t index, std::size_t length) const {
  const auto found = value(index);
  if (!found) return std::nullopt;
  auto sizes = found->integer ? std::optional(Sizes{*found->integer}) : sizes_of(*found);
  if (!sizes || sizes->empty()) return std::nullopt;
  if (sizes->size() == 1) sizes->resize(length, sizes->front());
  return sizes->size() == length ? sizes : std::nullopt;
}

std::vector<double> TensorArguments::numbers(std::size_t index) const {
  std::vector<double> found;
  if (index >= texts_->concrete.size()) return found;
  const std::string& text = texts_->concrete[index];
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end || *at++ != '[') return found;
  while (at != end && found.size() < 8) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    double number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc() || !std::isfinite(number)) break;
    found.push_back(number);
    at = read.ptr;
  }
  return found;
}

}  // namespace lanescope::analysis
