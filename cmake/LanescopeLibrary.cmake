# lanescope_library(analysis PUBLIC_HEADERS a.h SOURCES a.cpp DEPS model EXTERNAL fmt::fmt TESTS a_test.cpp)
#   one folder = one library: target lanescope_analysis, alias lanescope::analysis, its header set and its test program.
#   DEPS are lanescope folders (public), EXTERNAL are foreign targets (private), SHARED makes a shared library.
#   OPTIMIZE Og, O2 or O3: the level of a release build; without it, O2. -Og compiles in a quarter less time than -O1 and inlines little.
#   What has it there has -O0 with sanitizers.
#   OG_SOURCES of a library have -Og: they write words, or look at few rows. O2_SOURCES of a library with -Og have -O2, in batches of
#   LANESCOPE_BATCH.
#   BATCH n: how many of its sources are compiled as one; without it LANESCOPE_BATCH.
# lanescope_test_flags(target) for a test program that is no library's.
# lanescope_program(name SOURCES ... DEPS ... EXTERNAL ...) makes a program with the same flags.
# lanescope_link_fast_first(target) for what is linked from libraries of different levels.
include(CheckCXXCompilerFlag)
include(LanescopePrecompile)    # lanescope_precompiled(target level)

set(LANESCOPE_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast)

function(lanescope_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE ${LANESCOPE_WARNINGS})
  # Some toolchains link libstdc++ statically into every library. Exported from ours, its symbols would mix with those of
  # the libstdc++ that torch loads (importing torch after us then crashed); hidden, the two copies never meet.
  get_target_property(type ${target} TYPE)
  if(type MATCHES "SHARED|MODULE")
    target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL)
  endif()
  # Half of a source's time goes into its headers, which a batch reads once (docs/decisions/build_time.md).
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LANESCOPE_UNITY}
                        UNITY_BUILD_BATCH_SIZE ${LANESCOPE_BATCH})
  if(LANESCOPE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # takes a batch's sources for headers
  endif()
  if(LANESCOPE_PRECOMPILE)  # a tenth of gcc's time is looking for memory to give back; a batch needs less than this many KB
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=700000)
  endif()
  if(LANESCOPE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
    # GCC finds these after inlining, at times in code of libstdc++ and fmt that is right, and each release finds others:
    # 12 in std::string::insert, 13 in fmt's buffers. They stay warnings. The sanitizers check the same at run time.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-error=array-bounds -Wno-error=restrict -Wno-error=stringop-overflow
                             -Wno-error=stringop-overread)
    endif()
  endif()
  if(LANESCOPE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LANESCOPE_SANITIZE} -fno-omit-frame-pointer)
    if(LANESCOPE_SANITIZE MATCHES "undefined")
      # Else a finding is one printed line, and the test passes.
      target_compile_options(${target} PRIVATE -fno-sanitize-recover=undefined)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${LANESCOPE_SANITIZE})
  endif()
endfunction()

# What only tests need, and no installed part. `tests` builds it; `all` does not (docs/decisions/build_time.md).
function(lanescope_for_tests)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(tests ${ARGN})
endfunction()

# For programs that only test: their own code is not optimised, what they link is. So headers are most of a batch, and batches are
# large.
function(lanescope_test_flags target)
  lanescope_flags(${target})
  lanescope_for_tests(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${LANESCOPE_TEST_BATCH})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,Debug>:-O0>)
endfunction()

function(lanescope_library name)
  cmake_parse_arguments(arg "SHARED" "OPTIMIZE;BATCH" "PUBLIC_HEADERS;SOURCES;OG_SOURCES;O2_SOURCES;DEPS;EXTERNAL;PUBLIC_EXTERNAL;TESTS;TEST_DEPS" ${ARGN})
  set(target lanescope_${name})
  list(TRANSFORM arg_DEPS PREPEND lanescope:: OUTPUT_VARIABLE deps)
  foreach(level Og O2)
    string(TOUPPER ${level}_SOURCES sources)
    if(arg_${sources})
      string(TOLOWER ${target}_${level} part)
      add_library(${part} OBJECT ${arg_${sources}})
      lanescope_flags(${part})
      target_link_libraries(${part} PRIVATE ${deps} ${arg_PUBLIC_EXTERNAL} ${arg_EXTERNAL})
      target_compile_options(${part} PRIVATE $<$<CONFIG:Release>:-${level}>)
      if(level STREQUAL "Og")
        target_compile_options(${part} PRIVATE $<$<CONFIG:Debug>:-O0>)
      endif()
      lanescope_precompiled(${part} ${level})
      list(APPEND arg_SOURCES $<TARGET_OBJECTS:${part}>)
    endif()
  endforeach()
  if(arg_SHARED)
    add_library(${target} SHARED ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  elseif(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
  else()
    add_library(${target} INTERFACE)
  endif()
  add_library(lanescope::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY LANESCOPE_LIBRARIES ${target})
  if(arg_SOURCES)
    lanescope_flags(${target})
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${arg_PUBLIC_HEADERS})
    target_link_libraries(${target} PUBLIC ${deps} ${arg_PUBLIC_EXTERNAL} PRIVATE ${arg_EXTERNAL})
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    if(NOT arg_OPTIMIZE)
      set(arg_OPTIMIZE O2)
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-${arg_OPTIMIZE}>)
    if(arg_OPTIMIZE STREQUAL "Og")
      target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
    endif()
    if(arg_BATCH)
      set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    endif()
    # fmt in a shared library is only headers, with other definitions.
    if(NOT "fmt::fmt-header-only" IN_LIST arg_EXTERNAL)
      lanescope_precompiled(${target} ${arg_OPTIMIZE})
    endif()
  else()
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${arg_PUBLIC_HEADERS})
    target_link_libraries(${target} INTERFACE ${deps} ${arg_PUBLIC_EXTERNAL} ${arg_EXTERNAL})
  endif()
  if(LANESCOPE_BUILD_TESTS AND arg_TESTS)
    list(TRANSFORM arg_TEST_DEPS PREPEND lanescope:: OUTPUT_VARIABLE test_deps)
    add_executable(${name}_test ${arg_TESTS})
    lanescope_test_flags(${name}_test)
    target_link_libraries(${name}_test PRIVATE lanescope::${name} ${test_deps} ${arg_EXTERNAL}
                          fmt::fmt GTest::gmock GTest::gtest_main)
    if(NOT "fmt::fmt-header-only" IN_LIST arg_EXTERNAL)
      lanescope_precompiled(${name}_test test)
    endif()
    target_compile_definitions(${name}_test PRIVATE LANESCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                         PROPERTIES SKIP_REGULAR_EXPRESSION ".  SKIPPED ." TIMEOUT 300)
  endif()
endfunction()

# Functions that headers define are in many objects, and the linker takes the first: here those of the analysing libraries that were
# compiled for speed, before those of what prints (-Og). An archive cannot have this order: CMake puts the objects of other targets first.
function(lanescope_link_fast_first target)
  foreach(library analysis simulate explain_o2 model names)
    target_link_options(${target} PRIVATE $<$<CONFIG:Release>:$<TARGET_OBJECTS:lanescope_${library}>>)
  endforeach()
endfunction()

function(lanescope_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;EXTERNAL" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  lanescope_flags(${name})
  list(TRANSFORM arg_DEPS PREPEND lanescope:: OUTPUT_VARIABLE deps)
  target_link_libraries(${name} PRIVATE ${deps} ${arg_EXTERNAL})
endfunction()
