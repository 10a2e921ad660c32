// Draws the scene of evidence_scene.h as one inline SVG.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/view/evidence_scene.h"

namespace lanescope::report {

// Lanes from top to bottom: operators by nesting, API calls, streams, idle times of the GPU; below
// them a time axis that starts at 0 with the window. The evidence has a thick outline and a band
// across all lanes. At most about 250 bytes per bar.
std::string evidence_svg(std::string_view id, const explain::Facts& facts, const view::Scene& scene,
                         PictureWidth width = PictureWidth::kWide);

// What the picture shows, in words: its alternative text and its caption.
std::string evidence_caption(const explain::Facts& facts, const view::Scene& scene);

}  // namespace lanescope::report
