#include "json_mutator.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lanescope::fuzz {
namespace {

constexpr std::size_t kNoToken = ~std::size_t{0};

struct Token {
  char kind;  // a bracket, ',', ':', '"' a string, '0' anything else
  std::size_t begin, end;
  std::size_t partner = kNoToken;  // the bracket that closes this one
};

std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

std::vector<Token> tokens_of(std::string_view text) {
  constexpr std::string_view kSigns = "{}[],:", kBlanks = " \n\r\t";
  std::vector<Token> tokens;
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (kBlanks.find(c) != std::string_view::npos) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    char kind = c;
    if (c == '"') {
      end = string_end(text, at);
    } else if (kSigns.find(c) == std::string_view::npos) {
      kind = '0';
      while (end < text.size() && kSigns.find(text[end]) == std::string_view::npos &&
             kBlanks.find(text[end]) == std::string_view::npos && text[end] != '"')
        ++end;
    }
    if (kind == '{' || kind == '[') open.push_back(tokens.size());
    if ((kind == '}' || kind == ']') && !open.empty()) {
      tokens[open.back()].partner = tokens.size();
      open.pop_back();
    }
    tokens.push_back({kind, at, end, kNoToken});
    at = end;
  }
  return tokens;
}

std::string_view number(Random& random) {
  return random.text({"0",
                      "1",
                      "-1",
                      "7",
                      "7.0",
                      "0.001",
                      "1e3",
                      "1E-3",
                      "2147483647",
                      "2147483648",
                      "-2147483649",
                      "4294967295",
                      "4294967296",
                      "9223372036854775807",
                      "-9223372036854775808",
                      "9223372036854775808",
                      "18446744073709551615",
                      "18446744073709551616",
                      "99999999999999999999999",
                      "2305843009213693952.001",
                      "1700000000000000.123",
                      "1e308",
                      "-1e999",
                      "4.9e-324",
                      "0.1234567",
                      "-0",
                      "-0.0",
                      "NaN",
                      "Infinity",
                      "-inf",
                      "nan",
                      "0x7f",
                      "01",
                      "1.",
                      "+3"});
}

std::string_view word(Random& random) {
  return random.text(
      {"\"X\"",
       "\"B\"",
       "\"E\"",
       "\"i\"",
       "\"s\"",
       "\"t\"",
       "\"f\"",
       "\"b\"",
       "\"e\"",
       "\"n\"",
       "\"C\"",
       "\"M\"",
       "\"P\"",
       "\"Profile\"",
       "\"ProfileChunk\"",
       "\"p\"",
       "\"g\"",
       "\"kernel\"",
       "\"gpu_memcpy\"",
       "\"cpu_op\"",
       "\"user_annotation\"",
       "\"gpu_user_annotation\"",
       "\"cuda_runtime\"",
       "\"cuda_driver\"",
       "\"overhead\"",
       "\"Trace\"",
       "\"python_function\"",
       "\"cpu_instant_event\"",
       "\"ac2g\"",
       "\"fwdbwd\"",
       "\"ProfilerStep#1\"",
       "\"ProfilerStep#2\"",
       "\"ProfilerStep#x\"",
       "\"[memory]\"",
       "\"process_name\"",
       "\"thread_name\"",
       "\"process_labels\"",
       "\"process_sort_index\"",
       "\"thread_sort_index\"",
       "\"cudaLaunchKernel\"",
       "\"cudaStreamSynchronize\"",
       "\"cudaGraphLaunch\"",
       "\"aten::mm\"",
       "\"stream 7 \"",
       "\"stream 7\"",
       "\"nccl:all_reduce\"",
       "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\"",
       "\"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>\"",
       "\"\"",
       "\"\\u00e9\"",
       "\"\\ud83d\\ude00\"",
       "\"\\ud800\"",
       "null",
       "true",
       "false",
       "[[64, 64], []]",
       "[]",
       "{}",
       "\"7\"",
       "\"1e5\"",
       "\"0x10\""});
}

std::string_view key(Random& random) {
  return random.text({"\"ph\"",
                      "\"ts\"",
                      "\"dur\"",
                      "\"pid\"",
                      "\"tid\"",
                      "\"name\"",
                      "\"cat\"",
                      "\"id\"",
                      "\"id2\"",
                      "\"bp\"",
                      "\"s\"",
                      "\"args\"",
                      "\"External id\"",
                      "\"external id\"",
                      "\"correlation\"",
                      "\"stream\"",
                      "\"device\"",
                      "\"Sequence number\"",
                      "\"Fwd thread id\"",
                      "\"Input Dims\"",
                      "\"Input type\"",
                      "\"Input Strides\"",
                      "\"Concrete Inputs\"",
                      "\"Call stack\"",
                      "\"Bytes\"",
                      "\"Total Allocated\"",
                      "\"Total Reserved\"",
                      "\"Addr\"",
                      "\"Device Id\"",
                      "\"Device Type\"",
                      "\"Python id\"",
                      "\"Python parent id\"",
                      "\"bytes\"",
                      "\"Collective name\"",
                      "\"grid\"",
                      "\"block\"",
                      "\"labels\"",
                      "\"sort_index\"",
                      "\"traceEvents\"",
                      "\"deviceProperties\"",
                      "\"baseTimeNanoseconds\"",
                      "\"distributedInfo\"",
                      "\"schemaVersion\"",
                      "\"event:ts\"",
                      "\"event:x\"",
                      "\"graph id\"",
                      "\"cuda_sync_kind\"",
                      "\"wait_on_cuda_event_record_corr_id\"",
                      "\"flops\"",
                      "\"data\"",
                      "\"nodes\"",
                      "\"samples\"",
                      "\"timeDeltas\"",
                      "\"parent\"",
                      "\"children\"",
                      "\"startTime\"",
                      "\"endTime\"",
                      "\"a\\u0000b\"",
                      "\"\""});
}

std::string_view event(Random& random) {
  return random.text({
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10,"dur":50,"args":{"External id":1}})",
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":40,"dur":9,"args":{"correlation":3,"device":0,"stream":7,"External id":1}})",
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":20,"dur":3,"args":{"correlation":3,"External id":1}})",
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":0,"dur":99})",
      R"({"ph":"B","cat":"c","name":"b","pid":1,"tid":1,"ts":30})",
      R"({"ph":"E","name":"b","pid":1,"tid":1,"ts":35})",
      R"({"ph":"s","id":3,"pid":1,"tid":1,"ts":21,"cat":"ac2g","name":"ac2g"})",
      R"({"ph":"f","id":3,"pid":0,"tid":7,"ts":40,"cat":"ac2g","name":"ac2g","bp":"e"})",
      R"({"ph":"b","cat":"a","id":"x","name":"n","pid":1,"tid":1,"ts":3})",
      R"({"ph":"e","cat":"a","id":"x","name":"n","pid":1,"tid":1,"ts":8})",
      R"({"ph":"C","name":"c","pid":1,"ts":5,"args":{"v":1.5,"w":2}})",
      R"({"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":12,"args":{"Total Reserved":4096,"Total Allocated":512,"Bytes":512,"Addr":99,"Device Id":0,"Device Type":1}})",
      R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}})",
      R"({"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}})",
      R"j({"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":200})j",
  });
}

// One edit of `text`: everything from `begin` to `end` becomes `by`.
void replace(std::string& text, std::size_t begin, std::size_t end, std::string_view by) {
  text.replace(begin, end - begin, by);
}

// From a token to the end of its value.
std::size_t value_end(const std::vector<Token>& tokens, std::size_t at) {
  const std::size_t last = tokens[at].partner == kNoToken ? at : tokens[at].partner;
  return tokens[last].end;
}

// Tokens of a kind; kNoToken when there is none.
template <typename Is>
std::size_t any_token(const std::vector<Token>& tokens, Random& random, Is is) {
  if (tokens.empty()) return kNoToken;
  const std::size_t first = random.below(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (const std::size_t at = (first + i) % tokens.size(); is(at)) return at;
  return kNoToken;
}

void edit_events(std::string& text, const std::vector<Token>& tokens, Random& random) {
  // An object that a list holds: before it comes a bracket, or a comma after an object.
  const auto is_event = [&](std::size_t i) {
    return tokens[i].kind == '{' && tokens[i].partner != kNoToken && i > 0 &&
           (tokens[i - 1].kind == '[' ||
            (tokens[i - 1].kind == ',' && i > 1 && tokens[i - 2].kind == '}'));
  };
  const std::size_t one = any_token(tokens, random, is_event);
  const std::size_t two = any_token(tokens, random, is_event);
  if (one == kNoToken) {
    const std::size_t list =
        any_token(tokens, random, [&](std::size_t i) { return tokens[i].kind == '['; });
    if (list != kNoToken) text.insert(tokens[list].end, event(random));
    return;
  }
  const std::size_t begin = tokens[one].begin, end = value_end(tokens, one);
  const std::string whole = text.substr(begin, end - begin);
  const std::string other =
      text.substr(tokens[two].begin, value_end(tokens, two) - tokens[two].begin);
  switch (random.below(5)) {
    case 0:  // again
      text.insert(end, "," + whole);
      break;
    case 1: {  // gone, with its comma
      const bool comma = tokens[one - 1].kind == ',';
      replace(text, comma ? tokens[one - 1].begin : begin, end, "");
      break;
    }
    case 2:  // the other's copy
      replace(text, begin, end, other);
      break;
    default:
      text.insert(end, "," + std::string(event(random)));
  }
}

// The value of one key becomes that of another place with the same key: pids, ids and times meet.
void copy_value(std::string& text, const std::vector<Token>& tokens, Random& random) {
  const auto is_key = [&](std::size_t i) {
    return tokens[i].kind == '"' && i + 2 < tokens.size() && tokens[i + 1].kind == ':';
  };
  const std::size_t from = any_token(tokens, random, is_key);
  if (from == kNoToken) return;
  const auto text_of = [&](std::size_t i) {
    return std::string_view(text).substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
  };
  const std::size_t to = any_token(tokens, random, [&](std::size_t i) {
    return i != from && is_key(i) && text_of(i) == text_of(from);
  });
  if (to == kNoToken) return;
  const std::string value =
      text.substr(tokens[from + 2].begin, value_end(tokens, from + 2) - tokens[from + 2].begin);
  replace(text, tokens[to + 2].begin, value_end(tokens, to + 2), value);
}

void break_text(std::string& text, const std::vector<Token>& tokens, Random& random) {
  const Token& token = tokens[random.below(tokens.size())];
  switch (random.below(5)) {
    case 0:
      replace(text, token.begin, token.end, "");
      break;
    case 1:
      text.insert(token.end, text.substr(token.begin, token.end - token.begin));
      break;
    case 2:
      replace(text, token.begin, token.end, random.text({"{", "}", "[", "]", ",", ":", "\""}));
      break;
    case 3:
      text.insert(token.begin + random.below(token.end - token.begin + 1),
                  random.text({"\"", "\\", "\\u12", "\n", "\xff", "\xf0\x9f", "\\ud800", "\\\"",
                               "\x01", "\xef\xbb\xbf", "},{", "\", \"", "/*"}));
      break;
    default:
      text.resize(token.begin);
  }
}

void edit(std::string& text, Random& random) {
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty()) {
    text.assign("[").append(event(random)).append("]");
    return;
  }
  const auto is_value = [&](std::size_t i) {
    return (tokens[i].kind == '"' || tokens[i].kind == '0') && i > 0 && tokens[i - 1].kind == ':';
  };
  const std::size_t kind = random.below(12);
  if (kind < 3) return edit_events(text, tokens, random);
  if (kind < 5) return copy_value(text, tokens, random);
  if (kind < 6) return break_text(text, tokens, random);
  const std::size_t at = any_token(tokens, random, [&](std::size_t i) {
    if (kind < 8) return tokens[i].kind == '0';
    if (kind < 10) return is_value(i);
    return tokens[i].kind == '"' && i + 1 < tokens.size() && tokens[i + 1].kind == ':';
  });
  if (at == kNoToken) return break_text(text, tokens, random);
  const Token& token = tokens[at];
  if (kind < 8) return replace(text, token.begin, token.end, number(random));
  if (kind < 9) return replace(text, token.begin, token.end, word(random));
  if (kind < 10) {  // nested, seldom beyond every limit
    const std::size_t levels = random.one_in(8) ? 600 : 1 + random.below(5);
    const bool list = random.one_in(2);
    std::string open, close;
    for (std::size_t i = 0; i < levels; ++i) {
      open += list ? "[" : "{\"k\":";
      close += list ? "]" : "}";
    }
    text.insert(token.end, close);
    text.insert(token.begin, open);
    return;
  }
  if (kind < 11) return replace(text, token.begin, token.end, key(random));
  text.insert(token.begin, std::string(key(random)) + ":" +
                               std::string(random.one_in(2) ? word(random) : number(random)) + ",");
}

}  // namespace

std::string mutate_json(std::string_view text, Random& random) {
  std::string mutated(text);
  for (std::size_t edits = 1 + random.below(4); edits > 0; --edits) edit(mutated, random);
  return mutated;
}

}  // namespace lanescope::fuzz
