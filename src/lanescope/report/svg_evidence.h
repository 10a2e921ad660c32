// Draws a scene of evidence as one inline SVG.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/report/evidence_scene.h"
#include "lanescope/report/svg_writer.h"

namespace lanescope::report {

// Lanes from top to bottom: operators by nesting, calls of the GPU's driver, streams, times in
// which the GPU was idle; below them an axis whose 0 is the window's start. The evidence has a
// heavy outline and a band across all lanes. At most about 250 bytes a bar.
std::string evidence_svg(std::string_view id, const explain::Facts& facts, const Scene& scene,
                         PictureWidth width = PictureWidth::kWide);

// What the picture shows, in words: for those who do not see it, and below it.
std::string evidence_caption(const explain::Facts& facts, const Scene& scene);

}  // namespace lanescope::report
