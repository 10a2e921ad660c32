// Writes one inline SVG picture: a handful of shapes, classes for their looks, text always escaped.
#pragma once
#include <string>
#include <string_view>

namespace lanescope::report {

// Each picture of the page is drawn twice, for a wide screen and for a phone's: a wide one made
// small has no text that can be read. The style sheet shows one of them.
enum class PictureWidth : char { kWide, kNarrow };
// Units of the viewBox, about pixels.
constexpr double picture_width(PictureWidth width) {
  return width == PictureWidth::kWide ? 860 : 340;
}

// Lengths in units of the viewBox, written with one decimal. Classes and ids are ours and written
// as they are; every other text is escaped. Looks come from classes alone, because the page's
// Content-Security-Policy forbids style attributes. One thread.
class SvgWriter {
 public:
  // `id` is unique in its page; `title` names the picture, `description` says what it shows, both
  // for those who do not see it.
  SvgWriter(std::string_view id, double width, double height, std::string_view title,
            std::string_view description);

  // A tooltip becomes the element's <title>; empty: none.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tooltip = {});
  enum class Anchor : char { kStart, kMiddle, kEnd };
  void text(double x, double y, std::string_view css_class, std::string_view text,
            Anchor anchor = Anchor::kStart);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // An arrow from the first point to the second, leaving and arriving downwards.
  void arrow(double x1, double y1, double x2, double y2, std::string_view tooltip = {});
  // A small triangle on the edge of something that goes on beyond the picture.
  void goes_on_left(double x, double y, double height);
  void goes_on_right(double x, double y, double height);

  std::string take();  // the finished element

  // Where cut text ends: about how many characters of the small font fit.
  static std::size_t characters_in(double width);
  static double width_of(std::string_view text);  // about, in the small font

 private:
  std::string out_;
};

// Patterns and the arrow's head, once a page, for every picture in it.
std::string_view svg_definitions();

}  // namespace lanescope::report
