# Flags that every target of ours shares. No ISA flag may ever stand here: kernels pick theirs per file.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(GODWIT_CCACHE ccache)
if(GODWIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${GODWIT_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${GODWIT_CCACHE}")
endif()

add_library(godwit_flags INTERFACE)
target_include_directories(godwit_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
# GCC contracts a*b+c into an fma by default; the promise of equal bits forbids it.
target_compile_options(godwit_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                                              -Woverloaded-virtual)
if(GODWIT_WERROR)
  target_compile_options(godwit_flags INTERFACE -Werror)
endif()
if(GODWIT_SANITIZE)
  target_compile_options(godwit_flags INTERFACE -fsanitize=${GODWIT_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(godwit_flags INTERFACE -fsanitize=${GODWIT_SANITIZE})
endif()
