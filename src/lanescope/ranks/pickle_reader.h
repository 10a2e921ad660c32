// Reads the plain data of a Python pickle: dicts, lists, tuples, texts, numbers, True, False, None.
// A pickle is a program. This reader knows the opcodes that build plain data and refuses all others, so
// it imports and calls nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::ranks {

using PickleId = std::uint32_t;  // index into PickleData::nodes

// A value that the pickle shares is one node with several parents, and hostile files may have cycles.
struct PickleNode {
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kDict };
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;          // kBool: 0 or 1; kInteger
  double real = 0;                   // kReal
  std::string text;                  // kText
  std::vector<PickleId> items = {};  // kList (also tuples); kDict: key, value, key, value
};

struct PickleData {
  std::vector<PickleNode> nodes;
  PickleId root = 0;

  const PickleNode& operator[](PickleId id) const { return nodes[id]; }
  // The value of a text key of a dict; nothing: there is none.
  std::optional<PickleId> find(PickleId dict, std::string_view key) const;
};

inline constexpr std::size_t kMostPickleNodes = 8'000'000;

bool is_pickle(std::string_view bytes);  // begins with the mark of protocol 2 to 5

// kCorruptInput: the bytes end early or make no sense; kUnsupported: another opcode, such as one that
// calls a function; kLimit: more than kMostPickleNodes. The message has the byte. O(bytes).
Result<PickleData> read_pickle(std::string_view bytes);

}  // namespace lanescope::ranks
