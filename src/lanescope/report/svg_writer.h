// Writes one inline SVG picture: a few shapes, styled by CSS classes, with escaped text.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::report {

// Each picture of the page is drawn twice, for a wide screen and for a phone, because the text of a
// wide picture is too small to read on a phone. The style sheet shows one of the two.
enum class PictureWidth : char { kWide, kNarrow };
// Units of the viewBox; about one pixel each.
constexpr double picture_width(PictureWidth width) {
  return width == PictureWidth::kWide ? 860 : 340;
}

// Lengths are in units of the viewBox and written with one decimal. Classes and ids come from our
// code and are not escaped; every other text is. Colours and lines come from classes only, because
// the page's Content-Security-Policy forbids style attributes. One thread.
class SvgWriter {
 public:
  // `id` must be unique in its page. A screen reader reads `title` and `description` aloud.
  SvgWriter(std::string_view id, double width, double height, std::string_view title,
            std::string_view description);

  // The tooltip is the element's <title>; empty: none.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tooltip = {});
  enum class Anchor : char { kStart, kMiddle, kEnd };
  void text(double x, double y, std::string_view css_class, std::string_view text,
            Anchor anchor = Anchor::kStart);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // A curved arrow from the first point to the second; it starts and ends pointing down.
  void arrow(double x1, double y1, double x2, double y2, std::string_view tooltip = {});
  // A small triangle at the edge of a bar that continues outside the picture.
  void mark_continues_left(double x, double y, double height);
  void mark_continues_right(double x, double y, double height);

  std::string take();  // the finished element

  // About how many characters of the small font fit into `width`.
  static std::size_t characters_in(double width);
  static double width_of(std::string_view text);  // estimated, in the small font

 private:
  std::string out_;
};

// Patterns and the arrow head: once per page, used by all its pictures.
std::string_view svg_definitions();

}  // namespace lanescope::report
