// Where tests find traces of real programs: the small ones of this repository, and a collection
// that is no part of it.
#pragma once
#include <filesystem>
#include <vector>

namespace lanescope::testing {

std::filesystem::path shipped_traces();  // tests/data
std::filesystem::path
odd_traces();  // tests/odd_traces: drawn files with the oddities of other recorders

// The folder that LANESCOPE_SHARED_TRACES names, else ../shared/traces. It need not exist.
std::filesystem::path shared_traces();

// The traces in JSON, packed or not, of a folder and the folders in it; sorted.
std::vector<std::filesystem::path> json_traces(const std::filesystem::path& root);

}  // namespace lanescope::testing

// Skips a test (or, from SetUp, a fixture's tests) of gtest where the collection is missing.
// `stands_in`: the test that covers the same on traces of this repository.
#define LANESCOPE_NEEDS_SHARED_TRACES(stands_in)                                            \
  if (!std::filesystem::exists(::lanescope::testing::shared_traces()))                      \
  GTEST_SKIP() << "needs the collection of real traces (LANESCOPE_SHARED_TRACES names its " \
                  "folder); without it: " stands_in
