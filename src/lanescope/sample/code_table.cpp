#include "lanescope/sample/code_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lanescope/base/utf8.h"
#include "lanescope/sample/line_table.h"

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostCodes = 8192;
constexpr std::size_t kMostText = 512;         // characters of a name; of a file its end
constexpr std::size_t kMostLines = 256 << 10;  // bytes of a table of lines
constexpr std::uint64_t kMostUnits = 16 << 20;
constexpr std::size_t kTypeAt = 8, kSizeAt = 16;  // ob_type and ob_size of an object
constexpr std::size_t kBytesHeader = 32, kTextLengthAt = 16, kTextStateAt = 32, kTypeNameAt = 24;

}  // namespace

CodeHead CodeTable::head_of(const unsigned char* bytes) const {
  CodeHead head;
  head.type = word_at<std::uint64_t>(bytes, kTypeAt);
  head.file = word_at<std::uint64_t>(bytes, layout_.code_file);
  head.name = word_at<std::uint64_t>(bytes, layout_.code_name);
  head.lines = word_at<std::uint64_t>(bytes, layout_.code_lines);
  head.first_line = word_at<std::int32_t>(bytes, layout_.code_first_line);
  if (layout_.code_bytecode != kNoOffset) head.units = word_at<std::uint64_t>(bytes, kSizeAt);
  return head;
}

bool CodeTable::is_code_type(std::uint64_t type) {
  if (code_type_ != 0) return type == code_type_;
  std::uint64_t name = 0;
  char text[5] = "";
  if (!is_plausible(type) || !memory_.read(type + kTypeNameAt, &name, sizeof name) ||
      !memory_.read(name, text, sizeof text) || std::memcmp(text, "code", sizeof text) != 0)
    return false;
  code_type_ = type;
  return true;
}

// A str in its compact form, which every name has.
bool CodeTable::read_text(std::uint64_t address, std::string* out) {
  unsigned char header[40];
  if (!is_plausible(address) || !memory_.read(address, header, sizeof header)) return false;
  const auto length = word_at<std::uint64_t>(header, kTextLengthAt);
  const auto state = word_at<std::uint32_t>(header, kTextStateAt);
  const std::uint32_t kind = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0, is_ascii = (state >> 6 & 1) != 0;
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1) ||
      length > 1 << 20)
    return false;
  const std::uint64_t count = std::min<std::uint64_t>(length, kMostText), left_out = length - count;
  std::array<unsigned char, kMostText * 4> data;
  if (count != 0 &&
      !memory_.read(
          address + (is_ascii ? layout_.ascii_header : layout_.text_header) + left_out * kind,
          data.data(), count * kind))
    return false;
  out->clear();
  for (std::size_t i = 0; i < count; ++i)
    append_utf8(*out, kind == 1   ? data[i]
                      : kind == 2 ? word_at<std::uint16_t>(data.data(), i * 2)
                                  : word_at<std::uint32_t>(data.data(), i * 4));
  return true;
}

bool CodeTable::read_bytes(std::uint64_t address, std::string* out) {
  std::uint64_t size = 0;
  if (!is_plausible(address) || !memory_.read(address + kSizeAt, &size, sizeof size) ||
      size > kMostLines)
    return false;
  out->resize(size);
  return size == 0 || memory_.read(address + kBytesHeader, out->data(), size);
}

bool CodeTable::know(std::uint64_t code, const CodeHead& head) {
  const auto known = codes_.find(code);
  if (known != codes_.end() && known->second.head == head) return true;
  if (!is_code_type(head.type) || head.units > kMostUnits || head.first_line < 0) return false;
  SampledFunction function;
  function.first_line = head.first_line;
  Code made;
  made.head = head;
  if (!read_text(head.file, &function.file) || !read_text(head.name, &function.name) ||
      !read_bytes(head.lines, &made.lines))
    return false;
  const auto [number, is_new] =
      numbers_.try_emplace({{function.file, function.name}, function.first_line},
                           static_cast<std::uint32_t>(functions_.size()));
  if (is_new) functions_.push_back(std::move(function));
  made.function = number->second;
  codes_.insert_or_assign(code, std::move(made));
  return true;
}

bool CodeTable::frame_at(std::uint64_t code, std::uint64_t instruction, SampledFrame* out,
                         bool* skip) {
  Code& known = codes_.at(code);
  std::int64_t offset = 0;
  *skip = false;
  if (layout_.code_bytecode != kNoOffset) {
    offset = static_cast<std::int64_t>(instruction - (code + layout_.code_bytecode));
    // Before its first instruction a frame is one instruction in front of the code.
    *skip = offset == -2;
    if (*skip) return true;
    if (offset < 0 || offset % 2 != 0 || static_cast<std::uint64_t>(offset) >= known.head.units * 2)
      return false;
  } else {
    const auto at = static_cast<std::int32_t>(instruction);
    *skip = at < 0;
    if (*skip) return true;
    offset = layout_.lines == LineTable::kLines ? std::int64_t{at} * 2 : at;
    if (offset > static_cast<std::int64_t>(kMostUnits)) return false;
  }
  const auto at = static_cast<std::uint32_t>(offset);
  const auto [line, is_new] = known.line_at.try_emplace(at);
  if (is_new) {
    line->second = line_of(layout_.lines, known.lines, known.head.first_line, at);
    if (line->second == 0) line->second = known.head.first_line;
  }
  *out = {known.function, line->second};
  return true;
}

void CodeTable::keep_bounded() {
  if (codes_.size() < kMostCodes && functions_.size() < kMostCodes) return;
  codes_.clear();
  functions_.clear();
  numbers_.clear();
  ++generation_;
}

}  // namespace lanescope::sample
