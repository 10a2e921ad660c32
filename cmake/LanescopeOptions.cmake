# What the build may contain. Each LANESCOPE_WITH_* is AUTO (used when found), ON (an error when missing) or OFF.
# LANESCOPE_WITH_<X>_FOUND tells the rest of the build; lanescope_print_parts() tells the reader, one line a part.
option(LANESCOPE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LANESCOPE_BUILD_BENCH "Build the benchmarks" OFF)
option(LANESCOPE_BUILD_EXAMPLES "Build the C++ examples" OFF)
option(LANESCOPE_WARNINGS_AS_ERRORS "Treat warnings as errors (on in presets, never for embedders)" OFF)
option(LANESCOPE_UNITY "Compile sources in batches: a build from nothing takes a third of the time; OFF: one by one" ON)
# A compiler cache knows a batch only by its own text: with one, nothing is precompiled (docs/decisions/build_time.md).
set(precompile OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT "${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER}" MATCHES "cache"
   AND CMAKE_BUILD_TYPE STREQUAL "Release")
  set(precompile ON)
endif()
option(LANESCOPE_PRECOMPILE "Read the headers of the standard library and of GoogleTest once, not once a batch" ${precompile})
set(LANESCOPE_BATCH 24 CACHE STRING "How many sources of a folder are compiled as one batch")
set(LANESCOPE_TEST_BATCH 32 CACHE STRING "How many sources of a test program are compiled as one batch")
set(LANESCOPE_SANITIZE "" CACHE STRING "Sanitizers for everything, for example address,undefined")
set_property(GLOBAL PROPERTY LANESCOPE_PARTS "")

function(lanescope_part name found why)
  set_property(GLOBAL APPEND PROPERTY LANESCOPE_PARTS "${name}|${found}|${why}")
endfunction()

function(lanescope_print_parts)
  get_property(parts GLOBAL PROPERTY LANESCOPE_PARTS)
  foreach(part IN LISTS parts)
    string(REPLACE "|" ";" fields "${part}")
    list(GET fields 0 name)
    list(GET fields 1 found)
    list(GET fields 2 why)
    if(found)
      message(STATUS "lanescope: with ${name} (${why})")
    else()
      message(STATUS "lanescope: without ${name}: ${why}")
    endif()
  endforeach()
endfunction()

# lanescope_optional(ISAL "ISA-L" <found?> <how found> <what to do when missing>)
function(lanescope_optional key label found how remedy)
  set(LANESCOPE_WITH_${key} AUTO CACHE STRING "${label}: AUTO, ON or OFF")
  set_property(CACHE LANESCOPE_WITH_${key} PROPERTY STRINGS AUTO ON OFF)
  set(use FALSE)
  if(LANESCOPE_WITH_${key} STREQUAL "AUTO" OR LANESCOPE_WITH_${key})
    if(found)
      set(use TRUE)
      lanescope_part("${label}" TRUE "${how}")
    elseif(NOT LANESCOPE_WITH_${key} STREQUAL "AUTO")
      message(FATAL_ERROR "LANESCOPE_WITH_${key}=ON, but ${label} was not found. ${remedy}")
    else()
      lanescope_part("${label}" FALSE "not found. ${remedy}")
    endif()
  else()
    lanescope_part("${label}" FALSE "switched off by LANESCOPE_WITH_${key}")
  endif()
  set(LANESCOPE_WITH_${key}_FOUND ${use} PARENT_SCOPE)
endfunction()

# Required: small, in every distribution. fmt is used compiled: header-only it took five of six seconds of each source.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig QUIET)

foreach(pair "ISAL;libisal" "LIBDEFLATE;libdeflate" "ZSTD;libzstd")
  list(GET pair 0 key)
  list(GET pair 1 module)
  if(PkgConfig_FOUND)
    pkg_check_modules(LANESCOPE_${key} QUIET IMPORTED_TARGET ${module})
  endif()
  lanescope_optional(${key} "${module}" "${LANESCOPE_${key}_FOUND}" "${LANESCOPE_${key}_VERSION}"
                     "Debian: apt-get install ${module}-dev")
endforeach()

find_package(CLI11 QUIET)
lanescope_optional(CLI "the lanescope command (CLI11)" "${CLI11_FOUND}" "${CLI11_VERSION}"
                   "Debian: apt-get install libcli11-dev")

# SQL over a trace, and files of Nsight Systems. libedit gives the prompt of `lanescope sql` history and completion. libdw finds
# the callers of a native function for `lanescope sample --native`.
foreach(pair "UNWIND;libdw;native callers for lanescope sample (libdw);libdw-dev" "SQL;sqlite3>=3.38;SQL over a trace (SQLite);libsqlite3-dev" "EDIT;libedit;the prompt of lanescope sql (libedit);libedit-dev")
  list(GET pair 0 key)
  list(GET pair 1 module)
  list(GET pair 2 label)
  list(GET pair 3 package)
  if(PkgConfig_FOUND)
    pkg_check_modules(LANESCOPE_${key} QUIET IMPORTED_TARGET ${module})
  endif()
  lanescope_optional(${key} "${label}" "${LANESCOPE_${key}_FOUND}" "${LANESCOPE_${key}_VERSION}"
                     "Debian: apt-get install ${package}")
endforeach()

# Headers alone: Debian's CMake package means its shared library, which nothing here needs.
find_path(LANESCOPE_TOML_INCLUDE toml++/toml.h)
mark_as_advanced(LANESCOPE_TOML_INCLUDE)
if(LANESCOPE_TOML_INCLUDE)
  set(toml_found TRUE)
endif()
lanescope_optional(TOML "budgets for lanescope check (toml++)" "${toml_found}" "${LANESCOPE_TOML_INCLUDE}"
                   "Debian: apt-get install libtomlplusplus-dev")

# The server of `lanescope view`. Debian's header declares what its library holds.
if(PkgConfig_FOUND)
  pkg_check_modules(LANESCOPE_HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
endif()
lanescope_optional(VIEW "lanescope view (cpp-httplib)" "${LANESCOPE_HTTPLIB_FOUND}" "${LANESCOPE_HTTPLIB_VERSION}"
                   "Debian: apt-get install libcpp-httplib-dev")

# Its page is TypeScript, built by npm. Node 18 is enough.
find_program(LANESCOPE_NPM npm)
find_program(LANESCOPE_NODE NAMES node nodejs)
mark_as_advanced(LANESCOPE_NPM LANESCOPE_NODE)
if(LANESCOPE_NPM AND LANESCOPE_NODE AND LANESCOPE_WITH_VIEW_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/ui/package.json)
  set(page_ok TRUE)
endif()
lanescope_optional(PAGE "the page of lanescope view (npm)" "${page_ok}" "${LANESCOPE_NPM}"
                   "Debian: apt-get install nodejs npm")

# The Python module needs an interpreter with headers and pybind11 (from pip or from the distribution).
find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
if(Python3_Interpreter_FOUND AND NOT pybind11_DIR)
  execute_process(COMMAND ${Python3_EXECUTABLE} -m pybind11 --cmakedir
                  OUTPUT_VARIABLE pybind11_hint OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 QUIET HINTS ${pybind11_hint})
if(pybind11_FOUND AND Python3_Development.Module_FOUND)
  set(python_ok TRUE)
endif()
lanescope_optional(PYTHON "the Python module (pybind11)" "${python_ok}" "${Python3_EXECUTABLE}"
                   "pip install pybind11, and Debian: apt-get install python3-dev")

# libtorch, as the torch wheel of that interpreter brings it: only its headers and libtorch_cpu, never its CMake package
# (which insists on a CUDA toolkit when the wheel was built with one).
if(NOT LANESCOPE_TORCH_DIR AND Python3_Interpreter_FOUND)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c
      "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s and s.origin else '')"
    OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(torch_dir AND EXISTS "${torch_dir}/include/ATen/record_function.h")
    set(LANESCOPE_TORCH_DIR "${torch_dir}" CACHE PATH "The torch package (holds include/ and lib/)")
  endif()
endif()
lanescope_optional(TORCH "the torch observer for C++ (libtorch)" "${LANESCOPE_TORCH_DIR}" "${LANESCOPE_TORCH_DIR}"
                   "pip install torch, or set LANESCOPE_TORCH_DIR")
if(LANESCOPE_WITH_TORCH_FOUND)
  add_library(lanescope_libtorch INTERFACE)
  target_include_directories(lanescope_libtorch SYSTEM INTERFACE
    ${LANESCOPE_TORCH_DIR}/include ${LANESCOPE_TORCH_DIR}/include/torch/csrc/api/include)
  target_link_directories(lanescope_libtorch INTERFACE ${LANESCOPE_TORCH_DIR}/lib)
  target_link_libraries(lanescope_libtorch INTERFACE torch_cpu torch c10)
  target_link_options(lanescope_libtorch INTERFACE "LINKER:-rpath,${LANESCOPE_TORCH_DIR}/lib")
endif()

# CUPTI's headers (and those of CUDA and NVTX that they need): from a CUDA toolkit, or from the wheels nvidia-cuda-cupti,
# nvidia-cuda-runtime and nvidia-nvtx of that interpreter. Only headers: at run time the program's own libcupti is used.
if(NOT LANESCOPE_CUPTI_INCLUDE_DIRS)
  set(cuda_places $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda /opt/cuda)
  if(Python3_Interpreter_FOUND)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -c
        "import importlib.util as u; s = u.find_spec('nvidia'); print(';'.join(s.submodule_search_locations) if s else '')"
      OUTPUT_VARIABLE nvidia_dirs OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    foreach(dir IN LISTS nvidia_dirs)
      list(APPEND cuda_places ${dir}/cu13 ${dir}/cuda_cupti ${dir}/cuda_runtime ${dir}/nvtx)
    endforeach()
  endif()
  set(cupti_dirs)
  set(cupti_complete TRUE)
  foreach(header cupti.h cuda.h cuda_runtime_api.h nvtx3/nvToolsExt.h)
    unset(found_dir)
    find_path(found_dir ${header} NO_CACHE PATHS ${cuda_places} PATH_SUFFIXES include extras/CUPTI/include)
    if(found_dir)
      list(APPEND cupti_dirs ${found_dir})
    else()
      set(cupti_complete FALSE)
    endif()
  endforeach()
  if(cupti_complete)
    list(REMOVE_DUPLICATES cupti_dirs)
    set(LANESCOPE_CUPTI_INCLUDE_DIRS ${cupti_dirs})
  endif()
endif()
lanescope_optional(CUPTI "the GPU recorder (CUPTI)" "${LANESCOPE_CUPTI_INCLUDE_DIRS}" "${LANESCOPE_CUPTI_INCLUDE_DIRS}"
                   "pip install nvidia-cuda-cupti nvidia-cuda-runtime nvidia-nvtx, or install a CUDA toolkit (12.0 or newer)")

# A second program, lanescope-mpi; the others never link MPI. Its C interface is enough, as a system header.
if(NOT LANESCOPE_SANITIZE MATCHES "thread")  # Open MPI itself has races that ThreadSanitizer reports
  find_package(MPI QUIET COMPONENTS C)
endif()
lanescope_optional(MPI "many machines: lanescope-mpi (MPI)" "${MPI_C_FOUND}" "${MPI_C_VERSION}"
                   "Debian: apt-get install libopenmpi-dev openmpi-bin")
if(LANESCOPE_WITH_MPI_FOUND)
  add_library(lanescope_mpi_c INTERFACE)
  target_include_directories(lanescope_mpi_c SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
  # Without the C++ interface, which MPI 3 removed and Open MPI's header still declares.
  target_compile_definitions(lanescope_mpi_c INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(lanescope_mpi_c INTERFACE MPI::MPI_C)
endif()

if(LANESCOPE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(LANESCOPE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
