// A text that was computed from a file, such as a rank's summary, and is stored for the next time. The code that computes the
// text does not know where it is stored, and the code that stores it does not know what it means.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lanescope {

struct KeptText {
  std::optional<std::string> text;  // of the file as it is now; nothing: compute it
  // Stores the text, unless the file has changed since this KeptText was made. Empty: no text can be stored
  // for this file. It is no error if storing fails.
  std::function<void(std::string_view text)> keep;
};

// Gives the stored text of the file at `path`. An empty function: no texts are stored. Any thread may call it.
using KeepTexts = std::function<KeptText(const std::string& path)>;

}  // namespace lanescope
