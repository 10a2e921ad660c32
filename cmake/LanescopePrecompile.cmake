# lanescope_precompiled(target LEVEL): the target's sources start from headers that are compiled once for all targets of a
# level: O3, O2, O1, Og (with the headers of explain/ that rules and reports read), or test (-O0, with GoogleTest). With headers of a higher
# level, gcc 12 compiles all of a source at that level, and gcc 13 takes none. Nothing without LANESCOPE_PRECOMPILE (docs/decisions/build_time.md). Each level has a folder of its own in the build
# tree, from a target that has one empty source.

set(LANESCOPE_PRECOMPILED_STANDARD <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstring> <filesystem> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <tuple> <unordered_map>
    <unordered_set> <utility> <variant> <vector>)
set(LANESCOPE_PRECOMPILED_FACTS facts.h facts_memo.h rule.h sentences.h)

function(lanescope_precompiled target level)
  if(NOT LANESCOPE_PRECOMPILE)
    return()
  endif()
  set(donor lanescope_precompiled_${level})
  if(NOT TARGET ${donor})
    set(empty ${PROJECT_BINARY_DIR}/precompiled_${level}.cpp)
    file(CONFIGURE OUTPUT ${empty} CONTENT "// Only headers.\n")
    add_library(${donor} OBJECT EXCLUDE_FROM_ALL ${empty})
    lanescope_flags(${donor})
    set_target_properties(${donor} PROPERTIES UNITY_BUILD OFF)
    target_link_libraries(${donor} PRIVATE fmt::fmt)
    target_include_directories(${donor} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    if(level STREQUAL "test")  # programs: gcc takes no headers that were compiled for a library
      set_target_properties(${donor} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${donor} PRIVATE -fPIE -O0)
      target_link_libraries(${donor} PRIVATE GTest::gmock GTest::gtest)
      set(more <gmock/gmock.h> <gtest/gtest.h>)
    else()
      target_compile_options(${donor} PRIVATE $<$<CONFIG:Release>:-${level}>)
      if(level STREQUAL "Og")  # rules, reports, ranks, commands
        list(TRANSFORM LANESCOPE_PRECOMPILED_FACTS PREPEND ${PROJECT_SOURCE_DIR}/src/lanescope/explain/ OUTPUT_VARIABLE more)
      endif()
    endif()
    target_precompile_headers(${donor} PRIVATE ${LANESCOPE_PRECOMPILED_STANDARD} <fmt/format.h>
                              ${PROJECT_SOURCE_DIR}/src/lanescope/model/trace.h ${more})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${donor})
  # Also where fmt is not used: gcc takes the headers only with the same definitions.
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endfunction()
