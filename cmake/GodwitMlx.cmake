# MLX's C++ core from its Python wheel: headers, CMake package, libmlx and the BLAS it was linked with.
if(NOT GODWIT_MLX_ROOT)
  message(FATAL_ERROR "GODWIT_MLX_ROOT is not set. './dev build' unpacks the MLX wheel and sets it; by hand: "
                      "pip install --no-deps --target DIR mlx-cpu==0.32.4, then -DGODWIT_MLX_ROOT=DIR "
                      "(macOS: the mlx-metal wheel).")
endif()
find_package(MLX 0.32 REQUIRED CONFIG PATHS "${GODWIT_MLX_ROOT}/mlx" NO_DEFAULT_PATH)
file(GLOB GODWIT_MLX_RUNTIME_LIBS "${GODWIT_MLX_ROOT}/*.libs/*")

add_library(godwit_mlx INTERFACE)
get_target_property(_mlx_includes mlx INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(godwit_mlx SYSTEM INTERFACE ${_mlx_includes})
target_link_libraries(godwit_mlx INTERFACE mlx)
