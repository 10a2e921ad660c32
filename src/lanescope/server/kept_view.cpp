#include "lanescope/server/kept_view.h"

#include <memory>
#include <string>
#include <utility>

#include "lanescope/explain/facts.h"
#include "lanescope/view/step_windows.h"

namespace lanescope::server {
namespace {

constexpr std::string_view kPrefix = "view.";

// `lanes` must live as long as the sections.
format::KeptSections sections_of(const view::Lanes& lanes) {
  const auto made = std::make_shared<const view::KeptLanes>(view::keep_lanes(lanes));
  format::KeptSections kept = no_kept_view();
  for (const view::LaneSection& section : made->sections)
    kept.sections.push_back({std::string(section.name), section.row_bytes, section.rows});
  kept.owner = made;
  return kept;
}

}  // namespace

format::KeptSections no_kept_view() {
  format::KeptSections kept;
  kept.layer = "view " + std::string(view::lanes_build());
  return kept;
}

std::vector<view::LaneSection> lane_sections_of(const format::KeptSections& kept) {
  std::vector<view::LaneSection> sections;
  for (const format::KeptSection& section : kept.sections)
    if (section.name.starts_with(kPrefix))
      sections.push_back({section.name, section.row_bytes, section.rows});
  return sections;
}

Result<format::KeptSections> make_kept_view(const Trace& trace) {
  struct Made {
    explain::Facts facts;
    std::unique_ptr<const view::Lanes> lanes;
    std::shared_ptr<const void> tables;
  };
  LANESCOPE_TRY(explain::Facts facts, explain::gather_facts(trace));
  const auto made = std::make_shared<Made>();
  made->facts = std::move(facts);
  made->lanes = std::make_unique<const view::Lanes>(made->facts);
  format::KeptSections kept = sections_of(*made->lanes);
  made->tables = std::move(kept.owner);
  kept.owner = made;
  if (auto steps = view::note_of_steps(view::step_windows(made->facts)))
    kept.notes.push_back({view::steps_layer(), std::move(*steps)});
  return kept;
}

void keep_view(const std::filesystem::path& path, const view::Lanes& lanes,
               const format::KeptSections& opened, const format::IndexOptions& options) {
  if (!opened.source || opened.was_checked || options.use != format::IndexUse::kAutomatic) return;
  if (view::are_sections_of(lane_sections_of(opened), lanes)) {
    opened.remember_checked();
    return;
  }
  format::KeptSections kept = sections_of(lanes);
  kept.source = opened.source;
  static_cast<void>(format::keep_in_index(path, lanes.trace(), kept, options));
}

}  // namespace lanescope::server
