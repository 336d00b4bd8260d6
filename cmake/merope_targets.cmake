# The three functions every room's CMakeLists.txt is written with. Language level, warnings, sanitizers and the include root
# (the repository) are inside them, so a room lists sources and dependencies and nothing else.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(MEROPE_CCACHE ccache)
if(MEROPE_CCACHE)
  # pch_defines and time_macros: what ccache asks for before it caches sources that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MEROPE_CCACHE})
endif()

function(merope_apply_settings target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MEROPE_WERROR}>>:-Werror>)
  if(MEROPE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${MEROPE_SANITIZE} -fno-omit-frame-pointer -g)
    target_link_options(${target} PUBLIC -fsanitize=${MEROPE_SANITIZE})
  endif()
endfunction()

# merope_library(name SOURCES a.cc ... [PUBLIC lib ...] [PRIVATE lib ...])
function(merope_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    merope_apply_settings(${name})
    target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_PUBLIC} ${ARG_PRIVATE})
  endif()
endfunction()

# merope_executable(name SOURCES main.cc ... [PRIVATE lib ...])
# Every program is an install component of its own name: cmake --install build/release --component merope-server. Libraries
# that are not the system's lie in ../lib of it.
function(merope_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  merope_apply_settings(${name})
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE})
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT ${name})
endfunction()

# merope_test(name SOURCES a_test.cc ... [LIBS lib ...] LABELS unit [TIMEOUT seconds] [ENV K=V ...] [OWN_MAIN])
# One GoogleTest program is one CTest entry: loading LibTorch once per case would cost more than the cases.
function(merope_test name)
  cmake_parse_arguments(ARG "OWN_MAIN" "TIMEOUT" "SOURCES;LIBS;LABELS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  merope_apply_settings(${name})
  if(ARG_OWN_MAIN)
    target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock)
  else()
    target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} --gtest_output=xml:${CMAKE_BINARY_DIR}/test_results/${name}.xml)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  # Passive: with more test programs than cores, OpenMP threads that spin at each barrier made LibTorch eight times slower.
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "MEROPE_SOURCE_DIR=${CMAKE_SOURCE_DIR};MEROPE_BINARY_DIR=${CMAKE_BINARY_DIR};OMP_WAIT_POLICY=PASSIVE;${ARG_ENV}")
endfunction()

function(merope_print_summary)
  message(STATUS "merope ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}${MEROPE_SANITIZE_NOTE}")
  message(STATUS "  service (gRPC, Redis, libav)   ${MEROPE_SERVICE}")
  message(STATUS "  worker  (LibTorch)             ${MEROPE_WORKER}  ${MEROPE_TORCH_DIR}")
  message(STATUS "  CUDA kernels / LibTorch CUDA   ${MEROPE_CUDA} / ${MEROPE_TORCH_CUDA}")
  message(STATUS "  tests / benchmarks             ${MEROPE_TESTS} / ${MEROPE_BENCH}")
  message(STATUS "  sanitizer                      ${MEROPE_SANITIZE}")
  message(STATUS "  ccache                         ${MEROPE_CCACHE}")
endfunction()
