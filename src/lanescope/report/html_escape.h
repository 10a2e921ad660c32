// Text that nobody vouches for, made fit for HTML, SVG and XML: element content and quoted
// attributes alike.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace lanescope::report {

// & < > " ' become entities, so no text can open a tag, end an attribute or end a <script>.
// Control characters, DEL, C1 controls, noncharacters and the characters that turn the direction of
// writing are shown as \u001b, bytes that are not UTF-8 as \x9b: what results is well-formed XML.
// Linear. Any thread.
std::string html_escaped(std::string_view text);

// The same for at most `width` code points; what is cut ends in "...".
std::string html_name(std::string_view text, std::size_t width);

}  // namespace lanescope::report
