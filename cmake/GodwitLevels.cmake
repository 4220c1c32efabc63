# godwit_level_flags(SOURCES_VARIABLE): gives files named *_avx2.cpp and *_avx512.cpp their ISA flags, the only ones in
# the tree, and drops them from the list where the processor family has no such instructions.
function(godwit_level_flags list)
  set(sources ${${list}})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    # Nothing here throws; without this, unoptimised objects carry a weak reference to the exception runtime.
    set(avx2 -mavx2 -mfma -mf16c -fno-exceptions)
    set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC 12's own AVX-512 header sets the unused operand of a full-width operation to itself.
      list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
    endif()
    foreach(level avx2 avx512)
      set(files ${sources})
      list(FILTER files INCLUDE REGEX "_${level}\\.cpp$")
      if(files)
        set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${${level}}")
      endif()
    endforeach()
  else()
    list(FILTER sources EXCLUDE REGEX "_(avx2|avx512)\\.cpp$")
  endif()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
