# cmake -DDIST=ui/dist -DOUT=page_assets.cpp -P embed_page.cmake: the files of DIST as a C++ source. No DIST: no files.
set(arrays "")
set(rows "")
set(count 0)
if(DIST)
  file(GLOB_RECURSE files RELATIVE ${DIST} ${DIST}/*)
  list(SORT files)
  foreach(file IN LISTS files)
    file(READ ${DIST}/${file} hex HEX)
    file(SHA256 ${DIST}/${file} digest)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND arrays "constexpr unsigned char kFile${count}[] = {${bytes}0};\n")
    string(APPEND rows "    {\"${file}\", view(kFile${count}, sizeof kFile${count} - 1), \"${digest}\"},\n")
    math(EXPR count "${count} + 1")
  endforeach()
endif()
set(source "// Made by embed_page.cmake.
#include <array>

#include \"lanescope/server/assets.h\"

namespace lanescope::server {
namespace {

${arrays}
[[maybe_unused]] std::string_view view(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::span<const Asset> page_assets() {
  static const std::array<Asset, ${count}> kAssets{{
${rows}  }};
  return kAssets;
}

}  // namespace lanescope::server
")
file(WRITE ${OUT} "${source}")
