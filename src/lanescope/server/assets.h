// The files of the page. The build of ui/ makes them, and this program contains them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lanescope::server {

struct Asset {
  std::string_view path;  // "index.html", "assets/page.1f2e3d4c.js"
  std::string_view bytes;
  std::string_view sha256;  // of the bytes, in hex
};
// Empty: this program was built without Node.js, so there is no page.
std::span<const Asset> page_assets();
// One file: of this program, or of the folder that the environment variable LANESCOPE_PAGE names, for
// work on the page. `path` has no "..". Nothing: there is no such file.
std::optional<std::string> read_asset(const std::string& path);
// By the ending of its name: "application/javascript; charset=utf-8".
std::string_view media_type(std::string_view path);

}  // namespace lanescope::server
