// Copies and fills by the driver, with Kineto's names: "Memcpy HtoD (Pageable -> Device)", "Memset
// (Device)"; ROCm's "CopyDeviceToHost".
#include "lanescope/names/kernels/families.h"
#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {

bool read_copy_name(const ParsedText& name, KernelName& out) {
  std::string_view text = name.text;
  if (text.starts_with("Memcpy ") || text == "Memcpy") {
    out.kind = "copy";
    out.library = "driver";
    text.remove_prefix(6);
    while (text.starts_with(" ")) text.remove_prefix(1);
    const std::size_t open = text.find('(');
    const std::string_view direction = text.substr(0, open);
    out.operation = "copy";
    std::string_view word = direction;
    while (word.ends_with(" ")) word.remove_suffix(1);
    if (word.size() == 4 && word.substr(1, 2) == "to") out.operation += " " + std::string(word);
    if (open != text.npos) {
      const std::string_view inside = text.substr(open + 1, text.find(')', open) - open - 1);
      if (inside.size() <= 40) out.variant = inside;
    }
    return true;
  }
  if (text.starts_with("Memset")) {
    out.kind = "memset";
    out.library = "driver";
    out.operation = "memset";
    return true;
  }
  if (text.starts_with("CopyDeviceToDevice") || text.starts_with("CopyDeviceToHost") ||
      text.starts_with("CopyHostToDevice") || text == "FillBuffer") {
    out.kind = text == "FillBuffer" ? "memset" : "copy";
    out.library = "driver";
    out.operation = text == "FillBuffer"       ? "memset"
                    : contains(text, "ToHost") ? "copy DtoH"
                    : contains(text, "Host")   ? "copy HtoD"
                                               : "copy DtoD";
    return true;
  }
  return false;
}

}  // namespace lanescope::names::kernels
