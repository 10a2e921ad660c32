// Budget files and what people type: any bytes are a budget or a message that names the file, and
// times and limits are within their bounds.
#include "fuzz_support.h"
#include "lanescope/base/duration.h"
#include "lanescope/cli/budget_file.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/explain/questions.h"

namespace {

std::string mutate_budget(std::string_view text, lanescope::fuzz::Random& random) {
  std::string mutated(text);
  for (std::size_t edits = 1 + random.below(3); edits > 0; --edits) {
    std::size_t at = random.below(mutated.size() + 1);
    if (random.one_in(2)) at = mutated.find('\n', at) + 1;  // the start of a line
    switch (random.below(4)) {
      case 0:
        mutated.erase(at, 1 + random.below(20));
        break;
      case 1:
        mutated.insert(at, mutated.substr(random.below(mutated.size() + 1), random.below(60)));
        break;
      default:
        mutated.insert(at, random.text({"[at_most]\n",
                                        "[at_least]\n",
                                        "[rules]\n",
                                        "[verdict]\n",
                                        "waits = \"5 %\"\n",
                                        "must_not_be = [\"straggler\"]\n",
                                        "per = \"step\"\n",
                                        "per = \"recording\"\n",
                                        "allow_damage = true\n",
                                        "median_wall = \"10 ms\"\n",
                                        "wall = \"1.5 s\"\n",
                                        "idle = \"20 %\"\n",
                                        "launches = 100\n",
                                        "launches = -1\n",
                                        "peak_memory = \"1.5 GiB\"\n",
                                        "steps = 1e308\n",
                                        "must_not_fire = [\"host-sync\"]\n",
                                        "must_not_fire = []\n",
                                        "= ",
                                        "\"",
                                        "'''",
                                        "\"\"\"",
                                        "[",
                                        "]",
                                        "[[a]]\n",
                                        "a.b.c = {x = 1}\n",
                                        "1979-05-27T07:32:00Z",
                                        "nan",
                                        "-inf",
                                        "0x7f",
                                        "1_000",
                                        "\\u00e9",
                                        "\\UFFFFFFFF",
                                        "# comment\n",
                                        "ms",
                                        "%",
                                        "99999999999999999999",
                                        "\xff",
                                        "\r",
                                        "{",
                                        "}"}));
    }
  }
  return mutated;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_budget)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view text = fuzz::view(data, size);
  const auto budget = cli::parse_budget(text, "the budget");
  if (!budget)
    fuzz::require(budget.error().message.starts_with("the budget"), "a message names the file",
                  budget.error().message);
  else
    fuzz::require(!budget->limits.empty() || !budget->quiet_rules.empty(),
                  "a budget asks something");
  if (const auto of_job = cli::parse_job_budget(text, "the budget"); !of_job)
    fuzz::require(of_job.error().message.starts_with("the budget"), "a message names the file",
                  of_job.error().message);
  if (const auto ns = parse_duration_ns(text))
    fuzz::require(*ns >= 1'000'000 && *ns <= 1'000'000'000'000'000'000,
                  "a duration is within its limits");
  std::string_view rest = text;
  if (const auto number = take_decimal(&rest))
    fuzz::require(rest.size() < text.size() && *number >= 0, "a number takes characters");
  else
    fuzz::require(rest.size() == text.size(), "no number takes none");
  // As readers do it: bytes that may be read follow the text.
  for (const int digits : {0, 3})
    codec::parse_decimal(std::string(text) + std::string(64, '\0'), digits);
  const auto measures = explain::all_measures();
  const explain::Measure& measure = measures[fuzz::choice_of(text) % measures.size()];
  if (const auto limit = explain::parse_limit(measure, true, text); !limit)
    fuzz::require(!limit.error().message.empty(), "an error says what was expected");
  if (explain::is_question(text)) explain::rules_for_question(text);
  return 0;
}
