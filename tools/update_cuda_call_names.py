#!/usr/bin/env python3
"""Rewrites src/lanescope/codec/cuda_call_names.cpp from CUPTI's lists of call numbers.

usage: tools/update_cuda_call_names.py [folder with cupti_runtime_cbid.h and cupti_driver_cbid.h]

Only numbers and names are taken. A version at the end of a name is cut (cudaLaunchKernel_v7000,
cuMemcpyHtoDAsync_v2_ptsz), the suffixes of per-thread default streams stay.
"""
import pathlib
import re
import sys

HEAD = '''// Rewritten by tools/update_cuda_call_names.py; names by number, "-" where a number is unused.
#include "lanescope/codec/cuda_call_names.h"

#include <algorithm>
#include <vector>

namespace lanescope::codec {
namespace {

'''
TAIL = '''
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {  // each name ends with a space
    const std::size_t end = std::min(text.find(' '), text.size() - 1);
    names.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return names;
}

std::string_view name_at(const std::vector<std::string_view>& names, std::uint32_t number) {
  if (number >= names.size() || names[number] == "-") return {};
  return names[number];
}

}  // namespace

std::string_view cuda_runtime_call_name(std::uint32_t number) {
  static const std::vector<std::string_view> names = split(kRuntime);
  return name_at(names, number);
}

std::string_view cuda_driver_call_name(std::uint32_t number) {
  static const std::vector<std::string_view> names = split(kDriver);
  return name_at(names, number);
}

}  // namespace lanescope::codec
'''


def names_of(header: pathlib.Path) -> list[str]:
    found = re.findall(r"_TRACE_CBID_(\w+)\s*=\s*(\d+)\b", header.read_text())
    by_number = {int(number): name for name, number in found
                 if name not in ("INVALID", "SIZE", "FORCE_INT")}
    names = ["-"] * (max(by_number) + 1)
    for number, name in by_number.items():
        names[number] = re.sub(r"_v\d+(?=$|_ptsz$|_ptds$)", "", name)
    return names


def literal(variable: str, names: list[str]) -> str:
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) + 1 > 90:
            lines.append(line)
            line = ""
        line += name + " "
    lines.append(line)
    body = "\n".join(f'    "{line}"' for line in lines)
    return f"constexpr std::string_view {variable} =\n{body};\n"


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/local/cuda/include")
    target = pathlib.Path(__file__).parent.parent / "src/lanescope/codec/cuda_call_names.cpp"
    target.write_text(HEAD + literal("kRuntime", names_of(folder / "cupti_runtime_cbid.h")) + "\n" +
                      literal("kDriver", names_of(folder / "cupti_driver_cbid.h")) + TAIL)


if __name__ == "__main__":
    main()
