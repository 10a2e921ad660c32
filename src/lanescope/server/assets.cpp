#include "lanescope/server/assets.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace lanescope::server {

std::optional<std::string> read_asset(const std::string& path) {
  if (const char* folder = std::getenv("LANESCOPE_PAGE"); folder && *folder != '\0') {
    std::ifstream file(std::string(folder) + "/" + path, std::ios::binary);
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }
  for (const Asset& asset : page_assets())
    if (asset.path == path) return std::string(asset.bytes);
  return std::nullopt;
}

std::string_view media_type(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "application/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".json", "application/json"},
  }};
  for (const auto& [ending, type] : kTypes)
    if (path.ends_with(ending)) return type;
  return "application/octet-stream";
}

}  // namespace lanescope::server
