#include "lanescope/analysis/event_name_totals.h"

#include <string>
#include <unordered_map>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

class Collector {
 public:
  explicit Collector(const Trace& trace) : trace_(trace) {}

  void add(StringId name, CategoryId category_id, std::int64_t dur_ns) {
    const Category& category = trace_.categories()[raw(category_id)];
    if (is_device_work(category.kind) || category.kind == CategoryKind::kGpuUserAnnotation ||
        category.kind == CategoryKind::kFlow)
      return;
    const std::uint64_t key = (std::uint64_t{raw(name)} << 32) | raw(category_id);
    auto [found, fresh] = row_of_name_.try_emplace(key, 0);
    if (fresh) found->second = find_row(name, category);
    EventNameTotal& row = totals_.rows[found->second];
    ++row.count;
    row.total_ns += dur_ns;
    ++totals_.count;
    if (row.name.known()) ++totals_.known_count;
    if (row.name.by_category) ++totals_.category_count;
    if (row.name.kind == names::EventKind::kPythonFrame) ++totals_.frame_count;
  }

  EventNameTotals finish() {
    sort_rows(totals_.rows.begin(), totals_.rows.end(),
              [](const EventNameTotal& a, const EventNameTotal& b) {
                if (a.name.kind != b.name.kind) return a.name.kind < b.name.kind;
                if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
                if (a.name.group != b.name.group) return a.name.group < b.name.group;
                return a.category < b.category;
              });
    return std::move(totals_);
  }

 private:
  // The row for all names of one group.
  std::size_t find_row(StringId name, const Category& category) {
    names::EventName known = names::explain_event_name(trace_.text(name), category.kind);
    std::string key = known.group;
    key += '\0';
    key += static_cast<char>(known.kind);
    // For an unknown name, only the category is known.
    if (!known.known() && category.text != kNone<StringId>) key += trace_.text(category.text);
    const auto [found, fresh] = row_of_group_.try_emplace(std::move(key), totals_.rows.size());
    if (fresh) {
      EventNameTotal row;
      row.raw = name;
      row.name = std::move(known);
      row.category = category.text;
      totals_.rows.push_back(std::move(row));
    }
    ++totals_.rows[found->second].name_count;
    return found->second;
  }

  const Trace& trace_;
  EventNameTotals totals_;
  std::unordered_map<std::uint64_t, std::size_t> row_of_name_;
  std::unordered_map<std::string, std::size_t> row_of_group_;
};

}  // namespace

EventNameTotals compute_event_name_totals(const Trace& trace) {
  Collector collector(trace);

  const SliceColumns& slices = trace.slices();
  for (std::size_t i = 0; i < slices.size(); ++i)
    collector.add(slices.name[i], slices.category[i], slices.dur_ns[i]);
  const InstantColumns& instants = trace.instants();
  for (std::size_t i = 0; i < instants.size(); ++i)
    collector.add(instants.name[i], instants.category[i], 0);
  return collector.finish();
}

}  // namespace lanescope::analysis
