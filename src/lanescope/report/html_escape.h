// Escapes untrusted text for HTML, SVG and XML, for element content as well as quoted attributes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace lanescope::report {

// & < > " ' become entities, so no text can open a tag, end an attribute or end a <script>.
// Control characters, DEL, C1 controls, noncharacters and characters that change the direction of
// text are shown like \u001b, bytes that are not UTF-8 like \x9b. The result is well-formed XML.
// Linear. Any thread.
std::string html_escaped(std::string_view text);

// The same for at most `width` code points; longer text ends in "...".
std::string html_shortened(std::string_view text, std::size_t width);

}  // namespace lanescope::report
