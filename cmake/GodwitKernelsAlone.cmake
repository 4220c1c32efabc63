# What is built where nothing of the target processor is installed but a compiler: the kernels with their tests, on the
# headers of fmt and the sources of GoogleTest as Debian's packages of this machine (libfmt-dev, googletest) lay them down.
enable_testing()
include(GoogleTest)
set(INSTALL_GTEST OFF)
add_subdirectory(/usr/src/googletest/googletest "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)

# Through a link of its own: beside fmt lie the C headers of this machine.
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/include")
file(CREATE_LINK /usr/include/fmt "${CMAKE_BINARY_DIR}/include/fmt" SYMBOLIC)
add_library(godwit_base STATIC "${CMAKE_SOURCE_DIR}/src/base/error.cpp")
target_compile_definitions(godwit_base PUBLIC FMT_HEADER_ONLY)
target_include_directories(godwit_base SYSTEM PUBLIC "${CMAKE_BINARY_DIR}/include")
target_link_libraries(godwit_base PUBLIC godwit_flags)
