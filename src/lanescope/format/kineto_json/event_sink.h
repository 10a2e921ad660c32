// Turns one parsed trace event into calls of TraceBuilder.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/format/kineto_json/chrome_events.h"
#include "lanescope/format/kineto_json/cpu_profiles.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// The fields of an event; docs/formats/kineto_json.md lists them.
struct EventFields {
  char phase = '\0';  // '?': unknown
  bool has_phase = false;
  StringId name = kNone<StringId>, category = kNone<StringId>;
  StringId scope = kNone<StringId>, bind = kNone<StringId>;
  std::optional<std::int64_t> time_ns, dur_ns;
  std::optional<Scalar> pid, tid, id;
};

// One bit per ImportIssue, for issues found before it is clear whether the event counts.
using IssueBits = std::uint64_t;
static_assert(kImportIssueCount <= 8 * sizeof(IssueBits),
              "a wider IssueBits, or a rule for which issues one event can have");
constexpr IssueBits issue_bit(ImportIssue issue) {
  return std::uint64_t{1} << static_cast<unsigned>(issue);
}

// One thread, except finish(); borrows the builder.
class EventSink {
 public:
  explicit EventSink(TraceBuilder& builder)
      : builder_(builder), chrome_(builder), profiles_(builder) {}

  // Adds the event, or counts the issue that prevents it. `args` are its arguments, the last ones in the
  // builder's ArgsBuilder; `text` is the event's JSON, at `offset`.
  void add(const EventFields& event, IssueBits notes, ArgsId args, std::string_view text,
           std::uint64_t offset);
  // About `times` as many events as were added up to now come in all. Throws where these cannot be in use at once.
  void expect_in_all(double times, double most_rows) const;
  // Reserves memory for about `times` as many events as were added up to now, but in no list for more
  // than `most_rows`.
  void expect(double times, double most_rows);
  // The document is a .cpuprofile file: `json` is an object with its entries.
  void add_profile_file(std::string_view json) { profiles_.add_file(json); }
  // Joins the events that are halves of a slice or an arrow, on up to `threads` threads. Call it once,
  // after the last event.
  void finish(unsigned threads) {
    profiles_.finish(chrome_);
    chrome_.finish(threads);
  }

 private:
  enum class TrackUse : std::uint8_t { kThread, kStream, kPoint };  // of an arrow, or an end
  struct TrackEntry {
    Scalar pid, tid;
    TrackUse use = TrackUse::kThread;
    bool used = false;
    TrackId track{};
  };

  void drop(ArgsId args);
  void add_timed(const EventFields& event, ArgsId args, std::uint64_t offset);
  void add_counter(const EventFields& event, StringId name, ArgsId args, std::uint64_t offset);
  void add_profile(const EventFields& event, ArgsId args, std::uint64_t offset);
  void add_metadata(const EventFields& event, ArgsId args, std::string_view text,
                    std::uint64_t offset);
  CategoryId category_of(StringId text);
  CategoryId category_by_process(const Scalar& pid);
  TrackId track_of(const Scalar& pid, const Scalar& tid, TrackUse use);

  TraceBuilder& builder_;
  ChromeEvents chrome_;
  CpuProfiles profiles_;
  std::array<TrackEntry, 64> tracks_;
  std::vector<std::pair<StringId, CategoryId>> categories_;
};

}  // namespace lanescope::format
