#include "lanescope/format/spool/spool_details.h"

#include <string>

#include "lanescope/codec/json_text.h"

namespace lanescope::format {

const SpoolDetails::Detail& SpoolDetails::detail_of(std::uint32_t id) {
  const auto [known, is_new] = details_.try_emplace(id);
  if (!is_new) return known->second;
  if (id >= index_.texts.size() || !index_.has_text[id]) {
    builder_.stats().count(ImportIssue::kMissingField);
    return known->second;
  }
  if (codec::StackNode node; codec::decode_stack_node(index_.texts[id], &node)) {
    known->second.call_stack = call_stack_of(id);
    return known->second;
  }
  codec::OpDetails decoded;
  if (!codec::decode_op_details(index_.texts[id], &decoded))
    builder_.stats().count(ImportIssue::kWrongType);
  if (!decoded.input_dims.empty())
    known->second.lists = {{"Concrete Inputs", builder_.intern(decoded.concrete_inputs)},
                           {"Input type", builder_.intern(decoded.input_types)},
                           {"Input Strides", builder_.intern(decoded.input_strides)},
                           {"Input Dims", builder_.intern(decoded.input_dims)}};
  known->second.keywords = std::move(decoded.keywords);
  if (decoded.stack != 0) known->second.call_stack = call_stack_of(decoded.stack);
  return known->second;
}

// "innermost;its caller;...;outermost;", as Kineto writes it. Damage may have joined the nodes into
// a ring, so stop at the maximal depth of a stack.
StringId SpoolDetails::call_stack_of(std::uint32_t id) {
  const auto [known, is_new] = call_stacks_.try_emplace(id, kNone<StringId>);
  if (!is_new) return known->second;
  std::string text;
  for (std::size_t frames = 0; id != 0 && frames <= codec::kMaxStackFrames; ++frames) {
    codec::StackNode node;
    if (id >= index_.texts.size() || !index_.has_text[id] ||
        !codec::decode_stack_node(index_.texts[id], &node) || node.frame >= index_.texts.size() ||
        !index_.has_text[node.frame]) {
      builder_.stats().count(ImportIssue::kMissingField);
      break;
    }
    text.append(codec::valid_utf8(index_.texts[node.frame])).push_back(';');
    id = node.caller;
  }
  if (!text.empty()) known->second = builder_.intern(text);
  return known->second;
}

void SpoolDetails::add_args(std::uint32_t id) {
  using Kind = codec::DetailKeyword::Kind;
  const Detail& detail = detail_of(id);
  ArgsBuilder& args = builder_.args();
  if (detail.call_stack != kNone<StringId>)
    args.add_string(builder_.intern("Call stack"), ArgKey::kCallStack, detail.call_stack);
  for (const auto& [key, text] : detail.lists)
    args.add_json(builder_.intern(key), arg_key(key), text);
  for (const codec::DetailKeyword& keyword : detail.keywords) {
    const StringId key = builder_.intern(keyword.key);
    const ArgKey known = arg_key(keyword.key);
    switch (keyword.kind) {
      case Kind::kInteger:
        args.add_int(key, known, keyword.integer);
        break;
      case Kind::kUnsigned:
        args.add_uint(key, known, static_cast<std::uint64_t>(keyword.integer));
        break;
      case Kind::kReal:
        args.add_double(key, known, keyword.real);
        break;
      case Kind::kBoolean:
        args.add(key, known, keyword.integer != 0 ? ArgType::kTrue : ArgType::kFalse);
        break;
      case Kind::kText:
        args.add_string(key, known, builder_.intern(keyword.text));
        break;
      case Kind::kJson:
        args.add_json(key, known, builder_.intern(keyword.text));
        break;
    }
  }
}

}  // namespace lanescope::format
