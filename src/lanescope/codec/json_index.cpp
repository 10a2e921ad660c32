#include "lanescope/codec/json_index.h"

#include <simdjson.h>

#include <algorithm>

namespace lanescope::codec {

// simdjson offers its first stage only through the implementation object of its two front ends.
// Those stop a whole document at the first error (NaN, a stray quote). lanescope walks the token
// positions itself and decides for each event.
struct JsonIndex::Parser {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> stage;
  std::size_t capacity = 0;
};

JsonIndex::JsonIndex() : parser_(std::make_unique<Parser>()) {}
JsonIndex::~JsonIndex() = default;

bool JsonIndex::build(const char* text, std::size_t size) {
  tokens_ = {};
  if (size == 0 || size > 0xfffffff0u) return false;
  if (size > parser_->capacity) {
    const std::size_t capacity = std::max<std::size_t>(size + size / 2, 4096);
    parser_->capacity = 0;
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(
            capacity, 1, parser_->stage) != simdjson::SUCCESS)
      return false;
    parser_->capacity = capacity;
  }
  auto& stage = *parser_->stage;
  const auto* bytes = static_cast<const std::uint8_t*>(static_cast<const void*>(text));
  if (stage.stage1(bytes, size, simdjson::stage1_mode::regular) != simdjson::SUCCESS) return false;
  const std::size_t count = stage.n_structural_indexes;
  stage.structural_indexes[count] = static_cast<std::uint32_t>(size);
  tokens_ = {stage.structural_indexes.get(), count + 1};
  return true;
}

}  // namespace lanescope::codec
