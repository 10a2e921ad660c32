#include "lanescope/format/sniff.h"

#include <algorithm>
#include <cstddef>

namespace lanescope::format {
namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char* what;
};
constexpr Magic kMagics[] = {
    {0,
     {"SQLite format 3\0", 16},
     "an SQLite database (an export of Nsight Systems or of another profiler)"},
    {0, {"PK\x03\x04", 4}, "a zip archive (unpack it first)"},
    {0, {"\x1f\x8b", 2}, "gzip inside gzip (unpack it once first)"},
    {0, {"\x28\xb5\x2f\xfd", 4}, "zstd inside a compressed file (unpack it once first)"},
    {0,
     {"\xfd"
      "7zXZ\0",
      6},
     "an xz file (unpack it first)"},
    {0, {"BZh", 3}, "a bzip2 file (unpack it first)"},
    {0, {"\x04\x22\x4d\x18", 4}, "an lz4 file (unpack it first)"},
    {0,
     {"\x7f"
      "ELF",
      4},
     "a program (ELF)"},
    {0, {"\x89PNG", 4}, "a PNG picture"},
    {0, {"%PDF", 4}, "a PDF document"},
    {0, {"\x80\x02", 2}, "a Python pickle"},
    {0, {"\x80\x04", 2}, "a Python pickle"},
    {257, {"ustar", 5}, "a tar archive (unpack it first)"},
};

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// A protobuf message starts with a tag: field 1 to 15, and a length that is plausible.
bool looks_like_protobuf(std::string_view head) {
  return head.size() > 2 && (head[0] == '\x0a' || head[0] == '\x12') &&
         std::any_of(head.begin(), head.begin() + std::min<std::ptrdiff_t>(64, std::ssize(head)),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 && !is_blank(c); });
}

bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 && !is_blank(c); });
}

}  // namespace

std::optional<std::string> describe_non_json(std::string_view head) {
  if (head.empty()) return "an empty file (0 bytes)";
  for (const Magic& magic : kMagics)
    if (head.size() >= magic.at + magic.bytes.size() &&
        head.substr(magic.at, magic.bytes.size()) == magic.bytes)
      return magic.what;
  if (looks_like_protobuf(head))
    return "binary data that looks like protobuf (a Perfetto .pftrace, or an XPlane of JAX or "
           "TensorFlow)";
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    return "UTF-16 text (store it as UTF-8)";
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && is_blank(text[0])) text.remove_prefix(1);
  if (text.empty()) return "nothing but blanks";
  if (text[0] == '{' || text[0] == '[') return std::nullopt;
  std::string lower(text.substr(0, 16));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower.starts_with("<!doctype") || lower.starts_with("<html"))
    return "an HTML page (a failed download?)";
  if (is_text(text.substr(0, 64))) {
    std::string line(text.substr(0, std::min<std::size_t>(text.find_first_of("\r\n"), 40)));
    return "text that is not JSON: \"" + line + "\"";
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string bytes;
  for (const char c : head.substr(0, 8)) {
    bytes += bytes.empty() ? "" : " ";
    bytes.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
    bytes.push_back(kHex[static_cast<unsigned char>(c) & 15]);
  }
  return "binary data (first bytes " + bytes + ")";
}

}  // namespace lanescope::format
