# cmake --install build/release --prefix DIR: a relocatable folder that needs nothing built where it is copied to.
#   bin/godwit   run path $ORIGIN/../lib
#   lib/         libmlx, the BLAS of its wheel, and what else the program links beside glibc
if(NOT TARGET godwit)
  return()
endif()

# DT_RPATH, not DT_RUNPATH: only the former is searched for the libraries of our libraries as well.
target_link_options(godwit PRIVATE "LINKER:--disable-new-dtags")
set_target_properties(godwit PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS godwit RUNTIME_DEPENDENCY_SET godwit_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET godwit_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so"
        LIBRARY DESTINATION lib)
install(FILES LICENSE THIRD_PARTY.md README.md DESTINATION share/doc/godwit)
