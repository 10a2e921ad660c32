#include "lanescope/report/svg_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/report/html_escape.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

// The small font is 11 units high; its characters are about 6 wide.
constexpr double kCharacterWidth = 6.1;

constexpr std::string_view kDefinitions =
    R"svg(<svg class="defs" aria-hidden="true" focusable="false" width="0" height="0"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="6" height="6" class="hatch-back"/>
<line x1="0" y1="0" x2="0" y2="6" class="hatch-line"/></pattern>
<pattern id="faint" width="8" height="8" patternUnits="userSpaceOnUse">
<rect width="8" height="8" class="faint-back"/><circle cx="2" cy="2" r="1" class="faint-dot"/>
</pattern>
<pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" class="dots-back"/><circle cx="3" cy="3" r="1.3" class="dots-dot"/>
</pattern>
<pattern id="bars" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" class="bars-back"/><line x1="1" y1="0" x2="1" y2="6" class="bars-line"/>
</pattern>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0 L8 4 L0 8 Z" class="head"/></marker>
</defs></svg>
)svg";

std::string titled(std::string_view tooltip) {
  return tooltip.empty() ? std::string() : fmt::format("<title>{}</title>", html_escaped(tooltip));
}

}  // namespace

SvgWriter::SvgWriter(std::string_view id, double width, double height, std::string_view title,
                     std::string_view description) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"{0}-t {0}-d\" "
      "viewBox=\"0 0 {1:.1f} {2:.1f}\" width=\"{1:.1f}\" height=\"{2:.1f}\">\n<title "
      "id=\"{0}-t\">{3}</title>\n<desc id=\"{0}-d\">{4}</desc>\n",
      id, width, height, html_escaped(title), html_escaped(description));
}

void SvgWriter::rect(double x, double y, double width, double height, std::string_view css_class,
                     std::string_view tooltip) {
  out_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}")", x,
                      y, std::max(width, 0.0), std::max(height, 0.0), css_class);
  out_ += tooltip.empty() ? std::string("/>\n") : fmt::format(">{}</rect>\n", titled(tooltip));
}

void SvgWriter::text(double x, double y, std::string_view css_class, std::string_view text,
                     Anchor anchor) {
  const char* where = anchor == Anchor::kStart    ? ""
                      : anchor == Anchor::kMiddle ? " text-anchor=\"middle\""
                                                  : " text-anchor=\"end\"";
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\"{}>{}</text>\n", x, y, css_class,
                      where, html_escaped(text));
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  out_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1,
                      y1, x2, y2, css_class);
  out_ += '\n';
}

void SvgWriter::arrow(double x1, double y1, double x2, double y2, std::string_view tooltip) {
  const double bend = (y2 - y1) * 0.6;
  out_ += fmt::format(
      "<path d=\"M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" class=\"arrow\" "
      "marker-end=\"url(#head)\">{}</path>\n",
      x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2, titled(tooltip));
}

void SvgWriter::mark_continues_left(double x, double y, double height) {
  out_ += fmt::format("<path d=\"M{:.1f} {:.1f} l-6 {:.1f} l6 {:.1f} Z\" class=\"more\"/>\n", x + 7,
                      y + height / 2 - 4, 4.0, 4.0);
}

void SvgWriter::mark_continues_right(double x, double y, double height) {
  out_ += fmt::format("<path d=\"M{:.1f} {:.1f} l6 {:.1f} l-6 {:.1f} Z\" class=\"more\"/>\n", x - 7,
                      y + height / 2 - 4, 4.0, 4.0);
}

std::string SvgWriter::take() { return std::move(out_) + "</svg>\n"; }

std::size_t SvgWriter::characters_in(double width) {
  return width <= 0 ? 0 : static_cast<std::size_t>(width / kCharacterWidth);
}

double SvgWriter::width_of(std::string_view text) {
  return static_cast<double>(text_length(text)) * kCharacterWidth;
}

std::string_view svg_definitions() { return kDefinitions; }

}  // namespace lanescope::report
