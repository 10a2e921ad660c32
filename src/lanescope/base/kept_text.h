// A text that was made of a file and is kept for the next question about it, such as a rank's summary. The code that makes the
// text does not know where it is stored, and the code that stores it does not know what it means.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lanescope {

struct KeptText {
  std::optional<std::string> text;  // of the file as it is now; nothing: make it
  // Keeps the text for the next time, unless the file has changed since this was asked. Empty: nothing is
  // kept of this file. A text that cannot be kept is no error.
  std::function<void(std::string_view text)> keep;
};

// What is kept of the file at `path`. May be empty: nothing is. Any thread.
using KeepTexts = std::function<KeptText(const std::string& path)>;

}  // namespace lanescope
