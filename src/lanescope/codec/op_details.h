// The arguments of an operator call in few bytes: sizes, strides, types and small scalars of its
// inputs, its keywords, and the Python call stack.
//
// The observer writes these bytes inside a callback, without allocation and text. The
// recorder keeps each distinct sequence once. The spool's reader turns them into the JSON
// texts that torch.profiler writes.
//
//   bytes    = [kStack node] input* [kKeywords (key value)*]
//            | kStackNode frame node
//            | kSampleNode function line node
//   input    = kOther | kTensor type extent extent | kTensorList n (extent extent)*
//            | scalar | kScalarList n scalar*
//   extent   = n zigzag*     (sizes first, then strides; a tensor without strides has n = 0)
//   scalar   = kInteger zigzag | kReal 8 bytes | kTrue | kFalse | kText n bytes
//   value    = scalar | kUnsigned n | kTextList n (n bytes)*
//   key      = n bytes
// Numbers are LEB128. `type` is a length and torch's name of the element type, for example
// "c10::BFloat16". A list longer than kMaxListLength keeps only its length, because torch.profiler
// shows none of its elements.
//
// A call stack is a chain of nodes, and each node is one text. `frame` is the id of the text
// "file.py(line): function"; `node` is the id of the caller's node, or 0 for the outermost frame.
// Stacks that share callers share their nodes. For an op with a stack and nothing else, the node's
// id is its details. The stack of a sample is a chain of kSampleNode: `function` is the id of the
// text "file.py(first line): function", and `line` the one that it was at.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::codec {

// torch.profiler's limit for tensor lists and scalar lists
inline constexpr std::size_t kMaxListLength = 30;
// an op with more has no details, and the observer counts it
inline constexpr std::size_t kMaxOpDetailsBytes = 8192;

inline constexpr std::size_t kMaxStackFrames = 128;     // the innermost ones; the trace says that
                                                        // outer ones are missing
inline constexpr std::size_t kMaxStackNodeBytes = 16;   // a tag and two numbers: 11 at most
inline constexpr std::size_t kMaxSampleNodeBytes = 16;  // a tag and three numbers

enum class DetailTag : std::uint8_t {
  kOther = 1,
  kTensor,
  kTensorList,
  kScalarList,
  kInteger,
  kReal,
  kTrue,
  kFalse,
  kText,
  kTextList,
  kKeywords,
  kStack,
  kStackNode,
  kUnsigned,
  kSampleNode,
};

// Fills the caller's buffer. After an overflow it writes nothing more and bytes() is
// empty. Never throws.
class OpDetailsWriter {
 public:
  OpDetailsWriter(char* buffer, std::size_t size)
      : begin_(buffer), at_(buffer), end_(buffer + size) {}

  void stack(std::uint32_t node) { tag(DetailTag::kStack), number(node); }  // first of all
  void stack_node(std::uint32_t frame, std::uint32_t caller) {              // nothing else
    tag(DetailTag::kStackNode), number(frame), number(caller);
  }
  void sample_node(std::uint32_t function, std::uint32_t line,
                   std::uint32_t caller) {  // nothing else
    tag(DetailTag::kSampleNode), number(function), number(line), number(caller);
  }
  void other() { tag(DetailTag::kOther); }
  void tensor(std::string_view type, std::span<const std::int64_t> sizes,
              std::span<const std::int64_t> strides) {
    tag(DetailTag::kTensor);
    text(type);
    extent(sizes);
    extent(strides);
  }
  // Then `length` times list_tensor(), unless length > kMaxListLength.
  void tensor_list(std::size_t length) { tag(DetailTag::kTensorList), number(length); }
  void list_tensor(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
    extent(sizes);
    extent(strides);
  }
  // Then `length` scalars.
  void scalar_list(std::size_t length) { tag(DetailTag::kScalarList), number(length); }
  void integer(std::int64_t value) { tag(DetailTag::kInteger), zigzag(value); }
  void unsigned_integer(std::uint64_t value) { tag(DetailTag::kUnsigned), number(value); }
  void real(double value) {
    tag(DetailTag::kReal);
    put(&value, sizeof value);
  }
  void boolean(bool value) { tag(value ? DetailTag::kTrue : DetailTag::kFalse); }
  void string(std::string_view value) { tag(DetailTag::kText), text(value); }
  void keywords() { tag(DetailTag::kKeywords); }  // then key() and one value, any number of times
  void key(std::string_view name) { text(name); }
  // Then `length` times text().
  void text_list(std::size_t length) { tag(DetailTag::kTextList), number(length); }
  void text(std::string_view value) {
    number(value.size());
    put(value.data(), value.size());
  }

  // undo(mark) removes everything written since mark(), and an overflow too. For inputs that do not
  // fit, or whose reading throws.
  char* mark() const { return at_; }
  void undo(char* mark) {
    at_ = mark;
    overflowed_ = false;
  }
  bool overflowed() const { return overflowed_; }
  std::string_view bytes() const {
    return overflowed_ ? std::string_view()
                       : std::string_view(begin_, static_cast<std::size_t>(at_ - begin_));
  }

 private:
  void tag(DetailTag value) { put(&value, 1); }
  void number(std::uint64_t value) {
    char bytes[10];
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
    bytes[size++] = static_cast<char>(value);
    put(bytes, size);
  }
  void zigzag(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void extent(std::span<const std::int64_t> values) {
    number(values.size());
    for (const std::int64_t value : values) zigzag(value);
  }
  void put(const void* bytes, std::size_t size) {
    if (overflowed_ || size > static_cast<std::size_t>(end_ - at_)) {
      overflowed_ = true;
      return;
    }
    if (size != 0) std::memcpy(at_, bytes, size);
    at_ += size;
  }

  char* begin_;
  char* at_;
  char* end_;
  bool overflowed_ = false;
};

// A keyword argument of a range, or a field of a collective.
struct DetailKeyword {
  enum class Kind : std::uint8_t { kInteger, kReal, kBoolean, kText, kJson, kUnsigned };
  std::string key;
  Kind kind = Kind::kText;
  std::int64_t integer = 0;  // kInteger; kBoolean: 0 or 1; kUnsigned: its 64 bits
  double real = 0;           // kReal
  std::string text;          // kText: as it is; kJson: a JSON list of strings
};

// The four JSON texts of torch.profiler, each a list with one element per input. All empty: the op
// had no inputs.
struct OpDetails {
  std::string input_dims;       // [[64, 64], [], [[2, 3], [4]]]
  std::string input_types;      // ["float", "Scalar", "TensorList"]
  std::string input_strides;    // [[64, 1], [], [[3, 1], [1]]]
  std::string concrete_inputs;  // ["", "1.", ""]
  std::vector<DetailKeyword> keywords;
  std::uint32_t stack = 0;  // id of a node; 0: none
};

// One frame of a call stack and its caller, as text ids; caller 0: none.
struct StackNode {
  std::uint32_t frame = 0, caller = 0;
};

// One frame of a sampled stack: text ids of its function and of its caller's node, 0: none.
struct SampleNode {
  std::uint32_t function = 0, line = 0, caller = 0;
};

// False: the bytes are damaged, and `out` holds what comes before the damage. Linear cost,
// a few allocations.
bool decode_op_details(std::string_view bytes, OpDetails* out);
// Whether the bytes are one whole node; sets `out` only then.
bool decode_stack_node(std::string_view bytes, StackNode* out);
bool decode_sample_node(std::string_view bytes, SampleNode* out);

}  // namespace lanescope::codec
