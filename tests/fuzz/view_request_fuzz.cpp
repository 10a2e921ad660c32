// Questions of the page of `lanescope view`: "frame {...}" is a question and its body.
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz_support.h"
#include "lanescope/base/json_value.h"
#include "lanescope/server/session.h"
#include "lanescope/testing/program_sketch.h"

namespace {

using lanescope::server::Session;
using lanescope::server::TraceState;

// Steps, gaps, two streams, a copy and a collective; small, so that a question takes microseconds.
std::shared_ptr<const TraceState> drawn_trace() {
  lanescope::testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .begin("forward")
        .launch({.us = 40})
        .launch({.us = 10, .stream = 9})
        .launch(lanescope::testing::ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5))
        .end()
        .pass(100)
        .end();
  return *TraceState::make(program.trace(), "/nonexistent/lanescope-fuzz.json");
}

// Members that questions know, with values that they expect, values at their edges, and wrong ones.
std::string mutate_question(std::string_view text, lanescope::fuzz::Random& random) {
  std::string mutated(text);
  for (std::size_t edits = 1 + random.below(3); edits > 0; --edits) {
    const std::size_t at = random.below(mutated.size() + 1);
    switch (random.below(6)) {
      case 0:
        mutated.erase(at, 1 + random.below(12));
        break;
      case 1: {
        const std::size_t word = std::min(mutated.find(' '), mutated.size());
        mutated.replace(0, word,
                        random.text({"frame", "names", "event", "at", "area", "search", "table",
                                     "flame", "gap", "save", "notes", "perfetto", "none"}));
        break;
      }
      case 2: {
        const std::size_t open = mutated.find('{');
        if (open == std::string::npos) break;
        std::string member(random.text(
            {"\"t0\"", "\"t1\"", "\"step\"", "\"lanes\"", "\"lane\"", "\"row\"", "\"slice\"",
             "\"index\"", "\"text\"", "\"limit\"", "\"offset\"", "\"table\"", "\"sort\"",
             "\"filter\"", "\"descending\"", "\"names\"", "\"notes\"", "\"trace\"", "\"gen\""}));
        member += ':';
        member += random.text({"0",
                               "1",
                               "-1",
                               "3",
                               "1000",
                               "1e5",
                               "1e300",
                               "-1e300",
                               "4294967295",
                               "4294967296",
                               "9007199254740992",
                               "0.5",
                               "true",
                               "null",
                               "{}",
                               "[]",
                               "[0,1,2]",
                               "[4294967295]",
                               "[-1]",
                               "[1e99]",
                               "\"kernels\"",
                               "\"operators\"",
                               "\"names\"",
                               "\"mm kind:compute >1us\"",
                               "\"kind:x\"",
                               "\"lane:99999999999\"",
                               "\"\\u0000\"",
                               "\"self_ns\"",
                               "[{\"t_ns\":1,\"text\":\"a\"}]"});
        mutated.insert(open + 1,
                       member + (mutated.size() > open + 1 && mutated[open + 1] != '}' ? "," : ""));
        break;
      }
      case 3:
        mutated.insert(at, std::to_string(random.edge()));
        break;
      default:
        mutated.insert(at, random.text({"{", "}", "[", "]", ",", ":", "\"", "\\", "\\ud800", "\xff",
                                        "1", "e9", "-", "[[[[[[[[[[", "nan"}));
    }
  }
  return mutated;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_question)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  static server::Session session({drawn_trace()}, "fuzz", false);
  const std::string_view text = fuzz::view(data, size);
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  const server::Reply reply =
      session.answer("POST", "/api/" + std::string(text.substr(0, end)), {}, body);
  fuzz::require(
      reply.status == 200 || reply.status == 400 || reply.status == 404 || reply.status == 500,
      "a question has an answer or an error");
  if (reply.type == "application/json") {
    const auto json = parse_json(reply.body);
    fuzz::require(json && json->is_object(), "an answer is a JSON object", reply.body);
    fuzz::require(reply.status == 200 || json->find("error"), "an error has a sentence",
                  reply.body);
  }
  fuzz::require(reply.body.size() < (std::size_t{8} << 20),
                "an answer about a small trace is small");
  session.answer("GET", "/api/gaps", body, {});  // the same bytes after the "?" of an address
  return 0;
}
