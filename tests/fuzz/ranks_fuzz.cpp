// Parts of `lanescope ranks`: never a crash, whatever the rows say; what was read is written and read
// again unchanged; the order of the files changes nothing.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fuzz_support.h"
#include "lanescope/ranks/hang.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/ranks/part_file.h"
#include "lanescope/report/ranks_hang.h"
#include "lanescope/report/ranks_html.h"
#include "lanescope/report/ranks_text.h"

namespace {

using lanescope::fuzz::Random;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.emplace_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// Another number where one is, or another row where one is.
std::string mutate_part(std::string_view text, Random& random) {
  if (random.one_in(4)) {
    std::vector<std::string> lines = lines_of(text);
    if (lines.empty()) return std::string(text);
    const std::size_t at = random.below(lines.size()), other = random.below(lines.size());
    if (random.one_in(2))
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[other]);
    else
      std::swap(lines[at], lines[other]);
    std::string out;
    for (const std::string& line : lines) out += line;
    return out;
  }
  std::string out(text);
  for (std::size_t times = 1 + random.below(3); times > 0 && !out.empty(); --times) {
    std::size_t at = out.find_first_of("0123456789", random.below(out.size()));
    if (at == std::string::npos) break;
    std::size_t end = at;
    while (end < out.size() && out[end] >= '0' && out[end] <= '9') ++end;
    const auto number =
        static_cast<std::int64_t>(random.one_in(3) ? random.below(4) : random.edge());
    out.replace(at, end - at, std::to_string(number));
  }
  return out;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_part)

// The same bytes as a flight-recorder dump of either form.
void try_dump(std::string_view bytes) {
  using namespace lanescope;
  std::vector<ranks::DumpFile> files;
  files.push_back({"rank_0", ranks::read_flight_dump(bytes, "rank_0")});
  files.push_back({"rank_1", ranks::read_flight_dump("\x80\x02" + std::string(bytes), "rank_1")});
  const auto report = ranks::find_hang(std::move(files));
  if (!report) return;
  fuzz::require(!report::ranks_hang_text(*report).empty(), "a report has a text");
  fuzz::require(report::ranks_hang_json(*report).ends_with("}\n"), "a report has an end");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  try_dump(fuzz::view(data, size));
  const std::string text =
      "{\"lanescope_ranks_part\":1,\"files\":2}\n" + std::string(fuzz::view(data, size));
  const auto read = ranks::read_part(text, "part");
  fuzz::require(read.has_value(), "a part with a first line is read");
  const std::string written = ranks::write_part(*read);
  const auto again = ranks::read_part(written, "part");
  fuzz::require(again && again->size() == read->size(), "what was written is read again");
  fuzz::require_equal(written, ranks::write_part(*again), "a part is written alike twice");
  std::vector<ranks::RankFile> turned = *read;
  // Files of one name could be in any order.
  for (std::size_t i = 0; i < turned.size(); ++i) {
    turned[i].file = std::to_string(i) + turned[i].file;
    if (auto* const summary = std::get_if<ranks::RankSummary>(&turned[i].content))
      summary->file = turned[i].file;
  }
  const auto job = ranks::build_job(turned);
  std::reverse(turned.begin(), turned.end());
  const auto other = ranks::build_job(turned);
  fuzz::require(job.has_value() == other.has_value(), "the order of files changes nothing");
  if (!job) return 0;
  const ranks::JobVerdict verdict = ranks::judge_job(*job);
  // One of them for each input, so that more inputs are tried.
  switch (fuzz::choice_of(text) % 3) {
    case 0:
      fuzz::require_equal(report::ranks_json(*job, verdict),
                          report::ranks_json(*other, ranks::judge_job(*other)),
                          "the order of files changes nothing");
      break;
    case 1:
      fuzz::require(!report::ranks_text(*job, verdict).empty(), "a job has a text");
      fuzz::require(!report::ranks_csv(*job).empty(), "a job has a table");
      break;
    default:
      fuzz::require(report::ranks_html(*job, verdict).ends_with("</html>\n"), "a page has an end");
  }
  return 0;
}
