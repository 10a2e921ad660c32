#include "lanescope/sample/line_table.h"

#include <limits>

namespace lanescope::sample {
namespace {

constexpr std::uint32_t kUnitBytes = 2;  // of one instruction

int as_line(std::int64_t line) {
  return line > 0 && line <= std::numeric_limits<int>::max() ? static_cast<int>(line) : 0;
}

struct Bytes {
  std::string_view left;
  bool is_empty() const { return left.empty(); }
  std::uint32_t take() {
    if (left.empty()) return 0;
    const auto byte = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    return byte;
  }
  // 6 bits a byte, lowest first; 64: more follow.
  std::uint32_t take_number() {
    std::uint32_t value = 0;
    for (std::uint32_t shift = 0; shift < 30; shift += 6) {
      const std::uint32_t byte = take();
      value |= (byte & 63) << shift;
      if ((byte & 64) == 0) break;
    }
    return value;
  }
  std::int64_t take_signed() {
    const std::uint32_t value = take_number();
    return (value & 1) != 0 ? -std::int64_t{value >> 1} : std::int64_t{value >> 1};
  }
};

// Pairs: bytes of code, lines; both are steps.
int line_in_lnotab(Bytes table, std::int64_t line, std::uint32_t offset) {
  std::uint64_t at = 0;
  while (!table.is_empty()) {
    at += table.take();
    const auto step = static_cast<std::int8_t>(table.take());
    if (at > offset) break;
    line += step;
  }
  return as_line(line);
}

// Pairs: bytes of code that the line has, step of the line; -128: no line.
int line_in_ranges(Bytes table, std::int64_t line, std::uint32_t offset) {
  std::uint64_t end = 0;
  while (!table.is_empty()) {
    end += table.take();
    const auto step = static_cast<std::int8_t>(table.take());
    if (step != -128) line += step;
    if (offset < end) return step == -128 ? 0 : as_line(line);
  }
  return 0;
}

// Entries of a first byte (form, instructions), line and columns.
int line_in_locations(Bytes table, std::int64_t line, std::uint32_t offset) {
  std::uint64_t end = 0;
  while (!table.is_empty()) {
    const std::uint32_t first = table.take();
    const std::uint32_t form = first >> 3 & 15;
    if (form == 14) {  // line, last line, columns
      line += table.take_signed();
      table.take_number(), table.take_number(), table.take_number();
    } else if (form == 13) {  // line
      line += table.take_signed();
    } else if (form >= 10 && form <= 12) {
      line += form - 10;
      table.take(), table.take();
    } else if (form < 10) {
      table.take();
    }
    end += ((first & 7) + 1) * kUnitBytes;
    if (offset < end) return form == 15 ? 0 : as_line(line);
  }
  return 0;
}

}  // namespace

int line_of(LineTable format, std::string_view table, int first_line, std::uint32_t offset) {
  switch (format) {
    case LineTable::kLnotab:
      return line_in_lnotab({table}, first_line, offset);
    case LineTable::kLines:
      return line_in_ranges({table}, first_line, offset);
    case LineTable::kLocations:
      return line_in_locations({table}, first_line, offset);
  }
  return 0;
}

}  // namespace lanescope::sample
