// The file itself is damaged: its end is missing, events in it could not be read, or its checksum is wrong.
#include <algorithm>
#include <array>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// The issues that mean lost events. Arrows with one end and repaired text are not among them.
constexpr std::array kLosses = {
    ImportIssue::kTruncatedFile, ImportIssue::kTruncatedStream,  ImportIssue::kEventLost,
    ImportIssue::kMissingField,  ImportIssue::kChecksumMismatch, ImportIssue::kBadTime,
};

struct DamagedFile {
  std::uint64_t cases = 0;  // of events that were lost
  bool checksum_is_wrong = false;
};

std::optional<DamagedFile> measure_damaged_file(const Facts& facts) {
  DamagedFile found;
  for (const ImportIssue issue : kLosses) found.cases += facts.trace->import_stats()[issue].count;
  found.checksum_is_wrong = facts.trace->import_stats()[ImportIssue::kWrongChecksum].count > 0;
  if (found.cases == 0 && !found.checksum_is_wrong) return std::nullopt;
  return found;
}

void add_evidence(const ImportStats& stats, ImportIssue issue, Finding& finding) {
  const auto& counter = stats[issue];
  if (counter.count == 0) return;
  const ImportIssueInfo& info = import_issue_info(issue);
  Evidence evidence{kNone<SliceId>, say("{} x{}: {}", {text(info.name), count(counter.count),
                                                       text(info.description)})};
  if (counter.first_offset) {
    evidence.text.pattern += "; first at byte {}";
    evidence.text.values.push_back(count(*counter.first_offset));
  }
  finding.evidence.push_back(std::move(evidence));
}

// Every event was read, so each verdict stands, if no byte of a number has changed.
void tell_wrong_checksum(const Facts& facts, const ImportStats& stats, Finding& finding) {
  finding.verdict =
      say(facts,
          "The checksum of the compressed file is wrong or missing. Its text is whole, and {} "
          "[event|events] could be read; but bytes of it may have changed since it was written.",
          {count(stats.events)});
  finding.arithmetic.push_back(
      say("a changed byte can change a name, a time or a size without a trace of it"));
  finding.try_next = {"copy or write the file again; gzip -t and zstd -t check a copy"};
  finding.sample_count = 1;
  finding.brief = say(
      "the checksum of the compressed file is wrong or missing; its text is whole, but bytes of it "
      "may have changed");
}

Finding tell_damaged_file(const Facts& facts, const DamagedFile& found) {
  const ImportStats& stats = facts.trace->import_stats();
  Finding finding;
  for (const ImportIssue issue : kLosses) add_evidence(stats, issue, finding);
  add_evidence(stats, ImportIssue::kWrongChecksum, finding);
  finding.kind = FindingKind::kTrust;
  finding.confidence = Confidence::kHigh;
  finding.sample_noun = "case";
  if (found.cases == 0) {
    tell_wrong_checksum(facts, stats, finding);
    return finding;
  }
  const bool cut = facts.trace->import_stats().is_truncated();
  finding.verdict =
      cut ? say(facts,
                "The file is not whole: its end is missing. {} [event|events] could be "
                "read; all numbers here are of those.",
                {count(stats.events)})
          : say(facts,
                "Parts of the file could not be read ({} [case|cases]); {} [event|events] could be "
                "read, and all numbers here are of those.",
                {count(found.cases), count(stats.events)});
  finding.arithmetic.push_back(
      cut ? say("torch writes events by thread and kind, not by time: whole threads or streams may "
                "be missing from a file that was cut")
          : say("lanescope info lists everything that was lost or repaired"));
  finding.try_next = {"write the file again, and let the program end before copying it"};
  finding.sample_count = found.cases;
  finding.brief =
      cut ? say("the end of the file is missing; the numbers are of what is left")
          : say(facts,
                "{} [place|places] of the file could not be read; the numbers are of the rest",
                {count(found.cases)});
  return finding;
}

}  // namespace

extern constinit const Rule damaged_file_rule = {
    .id = "damaged-file",
    .question = "is the file whole?",
    .meant_by = "trust complete broken",
    .order = 280,
    .run = measure_and_tell<measure_damaged_file, tell_damaged_file>,
    .warns_of_loss = true,
};

}  // namespace lanescope::explain::rules
