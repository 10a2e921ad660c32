// The opcodes are those of CPython's Lib/pickletools.py for protocols 2 to 4. torch's C++ pickler
// (torch/csrc/jit/serialization/pickler.cpp, torch 2.13) writes a subset of protocol 2.
#include "lanescope/ranks/pickle_reader.h"

#include <fmt/format.h>

#include <bit>
#include <map>

namespace lanescope::ranks {
namespace {

using Kind = PickleNode::Kind;

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  Result<PickleData> run() {
    while (!failure_) {
      start_ = at_;
      const unsigned char opcode = byte();
      if (failure_) break;
      if (opcode == '.') {
        if (stack_.size() != 1 || !marks_.empty()) return corrupt("one value at the end");
        data_.root = stack_.back();
        return std::move(data_);
      }
      step(opcode);
    }
    return *failure_;
  }

 private:
  Error corrupt(std::string_view expected) const {
    return {
        Errc::kCorruptInput,
        fmt::format("expected {} in the pickle, found other data at byte {}", expected, start_)};
  }
  void fail(Error error) {
    if (!failure_) failure_ = std::move(error);
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail({Errc::kCorruptInput,
            fmt::format("the pickle ends early: expected {} more bytes at byte {}, found {}", count,
                        at_, bytes_.size() - at_)});
      return {};
    }
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  unsigned char byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
  }
  std::uint64_t little(std::size_t count) {
    std::uint64_t value = 0;
    const std::string_view raw = take(count);
    for (std::size_t i = 0; i < raw.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    return value;
  }

  void push(PickleNode node) {
    if (data_.nodes.size() >= kMostPickleNodes)
      return fail(
          {Errc::kLimit, fmt::format("the pickle has more than {} values", kMostPickleNodes)});
    stack_.push_back(static_cast<PickleId>(data_.nodes.size()));
    data_.nodes.push_back(std::move(node));
  }
  void push_integer(std::int64_t value) { push({Kind::kInteger, value, 0, {}, {}}); }

  void put(std::uint64_t key) {
    if (stack_.empty()) return fail(corrupt("a value to remember"));
    memo_[key] = stack_.back();
  }
  void get(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return fail(corrupt("a value that was remembered"));
    stack_.push_back(found->second);
  }

  // The values above the last mark, taken off the stack.
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) {
      fail(corrupt("a mark"));
      return {};
    }
    std::vector<PickleId> out(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                              stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  std::vector<PickleId> pop(std::size_t count) {
    if (stack_.size() < count || (!marks_.empty() && marks_.back() > stack_.size() - count)) {
      fail(corrupt("enough values on the stack"));
      return {};
    }
    std::vector<PickleId> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }

  void add_items(Kind kind, const std::vector<PickleId>& items) {
    if (failure_) return;
    if (stack_.empty() || data_.nodes[stack_.back()].kind != kind ||
        (kind == Kind::kDict && items.size() % 2 != 0))
      return fail(corrupt("a list or dict to fill"));
    added_ += items.size();
    if (added_ > kMostPickleNodes)  // shared values cost no node, but a place in their parents
      return fail({Errc::kLimit, fmt::format("the pickle has more than {} values", added_)});
    std::vector<PickleId>& into = data_.nodes[stack_.back()].items;
    into.insert(into.end(), items.begin(), items.end());
  }

  void push_tuple(std::vector<PickleId> items) {
    if (!failure_) push({Kind::kList, 0, 0, {}, std::move(items)});
  }

  void push_long(std::size_t count) {
    if (count > 8) return fail(corrupt("a number of at most 64 bits"));
    const std::uint64_t raw = little(count);
    const std::size_t shift = 64 - 8 * count;
    push_integer(count == 0 ? 0
                            : static_cast<std::int64_t>(raw << shift) >> shift);  // sign-extended
  }

  void push_real() {
    std::uint64_t bits = 0;
    for (const char each : take(8)) bits = bits << 8 | static_cast<unsigned char>(each);
    push({Kind::kReal, 0, std::bit_cast<double>(bits), {}, {}});
  }

  void push_text(std::uint64_t length) {
    const std::string_view text = take(length);
    if (!failure_) push({Kind::kText, 0, 0, std::string(text), {}});
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const unsigned char version = byte(); version < 2 || version > 5)
          fail(corrupt("protocol 2 to 5"));
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case '}':
        return push({Kind::kDict, 0, 0, {}, {}});
      case ']':
        return push({Kind::kList, 0, 0, {}, {}});
      case ')':
        return push_tuple({});
      case 't':
        return push_tuple(pop_to_mark());
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return push_tuple(pop(opcode - 0x84u));
      case 'u':  // SETITEMS
        return add_items(Kind::kDict, pop_to_mark());
      case 's':
        return add_items(Kind::kDict, pop(2));
      case 'e':  // APPENDS
        return add_items(Kind::kList, pop_to_mark());
      case 'a':
        return add_items(Kind::kList, pop(1));
      case 'q':
        return put(byte());
      case 'r':
        return put(little(4));
      case 0x94:  // MEMOIZE
        return put(memo_.size());
      case 'h':
        return get(byte());
      case 'j':
        return get(little(4));
      case 'X':
        return push_text(little(4));
      case 0x8c:
        return push_text(byte());
      case 0x8d:
        return push_text(little(8));
      case 'K':
        return push_integer(byte());
      case 'M':
        return push_integer(static_cast<std::int64_t>(little(2)));
      case 'J':
        return push_integer(static_cast<std::int32_t>(little(4)));
      case 0x8a:  // LONG1
        return push_long(byte());
      case 'G':
        return push_real();
      case 0x88:
        return push({Kind::kBool, 1, 0, {}, {}});
      case 0x89:
        return push({Kind::kBool, 0, 0, {}, {}});
      case 'N':
        return push({});
      default:
        return fail({Errc::kUnsupported,
                     fmt::format("expected plain data in the pickle, found opcode 0x{:02x} at byte "
                                 "{}; lanescope runs no code of a pickle",
                                 opcode, start_)});
    }
  }

  std::string_view bytes_;
  std::size_t at_ = 0, start_ = 0;
  std::uint64_t added_ = 0;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickleId> memo_;
  std::optional<Error> failure_;
  PickleData data_;
};

}  // namespace

std::optional<PickleId> PickleData::find(PickleId dict, std::string_view key) const {
  const PickleNode& node = nodes[dict];
  if (node.kind != Kind::kDict) return std::nullopt;
  for (std::size_t i = node.items.size(); i >= 2; i -= 2)  // the last one counts, as in Python
    if (const PickleNode& name = nodes[node.items[i - 2]];
        name.kind == Kind::kText && name.text == key)
      return node.items[i - 1];
  return std::nullopt;
}

bool is_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

Result<PickleData> read_pickle(std::string_view bytes) { return PickleReader(bytes).run(); }

}  // namespace lanescope::ranks
