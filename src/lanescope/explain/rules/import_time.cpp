// Much of the recording goes to imports, by samples of Python stacks.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/model/child_process.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastImportTimeShare = 0.1;  // of the thread's samples
constexpr std::string_view kImportFile = "<frozen importlib._bootstrap>(",
                           kImportFunction = ": _find_and_load", kModuleCode = "): <module>";

struct Import {
  std::int64_t samples = 0, time_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// What one sampled thread imports.
struct ImportTime {
  std::int64_t samples = 0, all_samples = 0, time_ns = 0;
  std::vector<std::pair<StringId, Import>> modules;  // most samples first; kNone: no code ran
};

std::int64_t samples_of(const Trace& trace, SliceId slice) {
  return std::max<std::int64_t>(trace.slice_args(slice).integer(ArgKey::kSamples).value_or(0), 0);
}

// Goes through the slices of a track in order of time and finds the outermost imports, each with
// the first module whose code ran in it.
class ImportFinder {
 public:
  explicit ImportFinder(const Trace& trace) : trace_(trace) {}

  void add(SliceId slice) {
    const std::int64_t start_ns = trace_.start_ns(slice), end_ns = trace_.end_ns(slice);
    if (top_end_ns_ <= start_ns) {
      found_.all_samples += samples_of(trace_, slice);
      top_end_ns_ = end_ns;
    }
    const std::string_view name = trace_.name(slice);
    if (import_ != kNone<SliceId> && trace_.end_ns(import_) <= start_ns) close();
    if (import_ == kNone<SliceId>) {
      if (!name.starts_with(kImportFile) || !name.ends_with(kImportFunction)) return;
      import_ = slice;
      module_ = kNone<StringId>;
    } else if (module_ == kNone<StringId> && name.ends_with(kModuleCode)) {
      module_ = trace_.slices().name[raw(slice)];
    }
  }

  ImportTime finish() {
    if (import_ != kNone<SliceId>) close();
    found_.modules.reserve(by_module_.size());
    for (const auto& [name, import] : by_module_)
      found_.modules.emplace_back(StringId{name}, import);
    sort_rows(found_.modules.begin(), found_.modules.end(),
              [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
    return std::move(found_);
  }

 private:
  void close() {
    const std::int64_t samples = samples_of(trace_, import_), time_ns = trace_.dur_ns(import_);
    found_.samples += samples;
    found_.time_ns += time_ns;
    Import& import = by_module_[raw(module_)];
    import.samples += samples;
    import.time_ns += time_ns;
    if (import.longest == kNone<SliceId> || time_ns > trace_.dur_ns(import.longest))
      import.longest = import_;
    import_ = kNone<SliceId>;
  }

  const Trace& trace_;
  ImportTime found_;
  std::map<std::uint32_t, Import> by_module_;
  std::int64_t top_end_ns_ = INT64_MIN;
  SliceId import_ = kNone<SliceId>;
  StringId module_ = kNone<StringId>;
};

bool has_samples(const Facts& facts) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kPythonSample) return true;
  return false;
}

std::optional<ImportTime> measure_import_time(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, ImportFinder> finders;  // by track
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kPythonSample &&
        !is_child_process(trace, trace.process(trace.track(SliceId{i}).process)))
      finders.try_emplace(raw(trace.slices().track[i]), trace).first->second.add(SliceId{i});
  std::optional<ImportTime> most;
  for (auto& [track, finder] : finders) {
    ImportTime found = finder.finish();
    if (!most || found.samples > most->samples) most = std::move(found);
  }
  if (!most || most->samples < kLeastSamples ||
      share_of(most->samples, most->all_samples) < kLeastImportTimeShare)
    return std::nullopt;
  return most;
}

Finding tell_import_time(const Facts& facts, const ImportTime& found) {
  Finding finding;
  finding.kind = FindingKind::kOnce;
  const Value share = ratio(found.samples, found.all_samples),
              samples = count(static_cast<std::uint64_t>(found.samples)),
              all = count(static_cast<std::uint64_t>(found.all_samples));
  finding.verdict = say("Imports took about {}: {} of a thread's samples ({} of {}).",
                        {ns(found.time_ns), share, samples, all});
  finding.at_stake_ns = found.time_ns;
  for (const auto& [module, import] : found.modules) {
    if (finding.evidence.size() == 3) break;
    Sentence line = say("about {} ({} samples) ",
                        {ns(import.time_ns), count(static_cast<std::uint64_t>(import.samples))});
    append(line, module == kNone<StringId>
                     ? say("before any code of a module ran")
                     : say("in {} and what it imports", {name(facts.trace->text(module))}));
    finding.evidence.push_back({import.longest, std::move(line)});
  }
  finding.brief = say("Imports took about {}", {ns(found.time_ns)});
  finding.try_next = {
      "`python -X importtime` times each import; import what few runs need inside the function "
      "that needs it; keep a worker alive instead of starting it again"};
  finding.confidence = found.samples >= 300 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = static_cast<std::uint64_t>(found.samples);
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace

extern constinit const Rule import_time_rule = {
    .id = "import-time",
    .question = "do imports of Python modules take long?",
    .meant_by = "import imports importing",
    .order = 835,
    .needs = {{has_samples,
               "samples of Python stacks (lanescope record --sample-python, or "
               "profile(sample_python=True))"}},
    .run = measure_and_tell<measure_import_time, tell_import_time>,
};

}  // namespace lanescope::explain::rules
