# CMake install: find_package(lanescope) gives lanescope::profiler and every layer below it; the command goes to bin/.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY LANESCOPE_LIBRARIES)
install(TARGETS ${libraries} EXPORT lanescope_targets FILE_SET HEADERS
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lanescope_development)
install(EXPORT lanescope_targets NAMESPACE lanescope:: FILE lanescope-targets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope COMPONENT lanescope_development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lanescope-config.cmake.in
  ${PROJECT_BINARY_DIR}/lanescope-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lanescope-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lanescope-config.cmake ${PROJECT_BINARY_DIR}/lanescope-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lanescope COMPONENT lanescope_development)
