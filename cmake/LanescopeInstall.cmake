# CMake install: find_package(lanescope) gives lanescope::profiler and every layer below it; the command goes to bin/.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY LANESCOPE_LIBRARIES)
# The command is a program, `ranks_mpi` is for another one, `server` is its page, `sql` answers its queries and `testing` is for our own tests: none is for programs to link.
list(REMOVE_ITEM libraries lanescope_cli lanescope_ranks_mpi lanescope_server lanescope_sql lanescope_testing)
# Installed shared libraries find each other wherever the prefix is moved to; the observer finds the torch it was built for.
if(TARGET lanescope_record_cupti)
  set_target_properties(lanescope_record_cupti PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
if(TARGET lanescope_record_torch)
  set_target_properties(lanescope_record_torch PROPERTIES INSTALL_RPATH "$ORIGIN;${LANESCOPE_TORCH_DIR}/lib")
endif()
install(TARGETS ${libraries} EXPORT lanescope_targets FILE_SET HEADERS
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lanescope_development)
install(EXPORT lanescope_targets NAMESPACE lanescope:: FILE lanescope-targets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope COMPONENT lanescope_development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lanescope-config.cmake.in
  ${PROJECT_BINARY_DIR}/lanescope-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lanescope-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lanescope-config.cmake ${PROJECT_BINARY_DIR}/lanescope-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope COMPONENT lanescope_development)
