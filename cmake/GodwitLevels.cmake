# godwit_level_flags(SOURCES_VARIABLE): gives files named *_avx2.cpp, *_avx512.cpp and *_neon.cpp their ISA flags, the only
# ones in the tree, and drops those from the list whose instructions the processor family does not have.
function(godwit_level_flags list)
  set(sources ${${list}})
  # Nothing here throws; without this, unoptimised objects carry a weak reference to the exception runtime.
  set(avx2 -mavx2 -mfma -mf16c -fno-exceptions)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni)
  set(neon -fno-exceptions)  # NEON is part of AArch64
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12's own AVX-512 header sets the unused operand of a full-width operation to itself.
    list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set(levels)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(levels avx2 avx512)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(levels neon)
  endif()
  foreach(level avx2 avx512 neon)
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "_${level}\\.cpp$")
    if(NOT level IN_LIST levels)
      list(FILTER sources EXCLUDE REGEX "_${level}\\.cpp$")
    elseif(files)
      set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${${level}}")
    endif()
  endforeach()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
