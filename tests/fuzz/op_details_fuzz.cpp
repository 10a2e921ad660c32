// Packed details of operators (codec/op_details.h), any bytes: memory in proportion, lists that are
// JSON, and what the writer writes is read as it was meant.
#include <vector>

#include "fuzz_support.h"
#include "lanescope/base/json_value.h"
#include "lanescope/codec/op_details.h"

namespace {

using namespace lanescope;

// The writer, led by random choices: what it made is whole.
std::string written(fuzz::Random& random) {
  std::vector<char> buffer(64 + random.below(1024));
  codec::OpDetailsWriter out(buffer.data(), buffer.size());
  const auto sizes = [&] {
    std::vector<std::int64_t> values(random.below(6));
    for (auto& value : values) value = static_cast<std::int64_t>(random.edge());
    return values;
  };
  const auto scalar = [&] {
    switch (random.below(4)) {
      case 0:
        return out.integer(static_cast<std::int64_t>(random.edge()));
      case 1:
        return out.real(random.pick({0.0, -1.5, 1e300, 1e10, 0.1}));
      case 2:
        return out.boolean(random.one_in(2));
      default:
        return out.string(random.text({"", "mean", "a\"b", "\xff", "long text of an argument"}));
    }
  };
  if (random.one_in(8)) {
    out.stack_node(static_cast<std::uint32_t>(random.edge()),
                   static_cast<std::uint32_t>(random.edge()));
    return std::string(out.bytes());
  }
  if (random.one_in(4)) out.stack(static_cast<std::uint32_t>(random.edge()));
  for (std::size_t inputs = random.below(6); inputs > 0; --inputs) {
    switch (random.below(5)) {
      case 0:
        out.other();
        break;
      case 1:
        out.tensor(random.text({"float", "c10::BFloat16", ""}), sizes(), sizes());
        break;
      case 2: {
        const std::size_t length = random.below(codec::kMaxListLength + 3);
        out.tensor_list(length);
        for (std::size_t i = 0; i < length && length <= codec::kMaxListLength; ++i)
          out.list_tensor(sizes(), sizes());
        break;
      }
      case 3: {
        const std::size_t length = random.below(5);
        out.scalar_list(length);
        for (std::size_t i = 0; i < length; ++i) scalar();
        break;
      }
      default:
        scalar();
    }
  }
  if (random.one_in(2)) {
    out.keywords();
    for (std::size_t keys = random.below(4); keys > 0; --keys) {
      out.key(random.text({"dim", "dtype", "", "k\"\n"}));
      if (random.one_in(4)) {
        out.text_list(2);
        out.text("a");
        out.text("b\\");
      } else if (random.one_in(4)) {
        out.unsigned_integer(random.edge());
      } else {
        scalar();
      }
    }
  }
  return std::string(out.bytes());
}

// Every whole text is read to its end; after that it may be damaged.
std::string mutate_details(std::string_view bytes, fuzz::Random& random) {
  const std::string fresh = written(random);
  codec::OpDetails details;
  codec::StackNode node;
  fuzz::require(codec::decode_op_details(fresh, &details) || codec::decode_stack_node(fresh, &node),
                "what the writer wrote is read");
  std::string mutated = random.one_in(3) ? fresh : std::string(bytes) + fresh;
  for (std::size_t edits = random.below(4); edits > 0 && !mutated.empty(); --edits) {
    const std::size_t at = random.below(mutated.size());
    if (random.one_in(3))
      mutated.erase(at, 1 + random.below(8));
    else if (random.one_in(2))
      mutated[at] = static_cast<char>(1 + random.below(15));
    else
      mutated[at] = static_cast<char>(random.next());
  }
  return mutated;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_details)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::view(data, size);
  codec::OpDetails details;
  const bool whole = codec::decode_op_details(bytes, &details);
  std::size_t kept = 0;
  for (const std::string* list : {&details.input_dims, &details.input_types, &details.input_strides,
                                  &details.concrete_inputs}) {
    kept += list->size();
    if (whole && !list->empty())
      fuzz::require(parse_json(*list).has_value(), "a list is JSON", *list);
  }
  for (const codec::DetailKeyword& keyword : details.keywords) {
    kept += keyword.key.size() + keyword.text.size();
    if (whole && keyword.kind == codec::DetailKeyword::Kind::kJson)
      fuzz::require(parse_json(keyword.text).has_value(), "a keyword's list is JSON", keyword.text);
  }
  // A byte of a text becomes at most six, one of a real a few; an input costs four times "[], ".
  fuzz::require(kept <= 64 + 64 * size, "memory fits the bytes");
  codec::StackNode node;
  codec::decode_stack_node(bytes, &node);
  return 0;
}
