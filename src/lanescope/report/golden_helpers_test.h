// For the golden tests: a text against its file under tests/golden. tools/update_golden.py runs them
// with LANESCOPE_UPDATE_GOLDEN set, and then they write the files.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace lanescope::report {

inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(LANESCOPE_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("LANESCOPE_UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << "no " << path << "; tools/update_golden.py writes it";
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str())
      << path << "; if the change is meant: tools/update_golden.py, read it, say why in the commit";
}

// An explanation as text, Markdown or JSON without the list of all rules at its end: each new rule
// changes that list, and report_test.cpp has a test of it.
inline std::string without_rule_list(std::string text) {
  for (const std::string_view heading :
       {"\nWhat else was checked\n", "\n## What else was checked\n"})
    if (const auto at = text.find(heading); at != text.npos) return text.substr(0, at);
  if (const auto at = text.find(",\n  \"rules\": ["); at != text.npos)
    return text.substr(0, at) + "\n}\n";
  return text;
}

}  // namespace lanescope::report
