# The web page, bundled by Node.js (GODWIT_NODE) and compiled into the program. Its npm packages are already in
# web/node_modules (./dev brings both): a build reaches for no network. Without them the program has no page, and says so.
set(GODWIT_NODE "" CACHE FILEPATH "Node.js that bundles the web page; without it there is none")
set(godwit_web_root "${CMAKE_SOURCE_DIR}/web")
set(godwit_web_out "${CMAKE_BINARY_DIR}/web")
set(GODWIT_WEB_SOURCE "${godwit_web_out}/web_assets.cpp")

if(GODWIT_NODE AND EXISTS "${godwit_web_root}/node_modules/esbuild/package.json")
  file(GLOB_RECURSE godwit_web_inputs CONFIGURE_DEPENDS "${godwit_web_root}/src/*")
  add_custom_command(
    OUTPUT "${GODWIT_WEB_SOURCE}"
    COMMAND "${GODWIT_NODE}" "${godwit_web_root}/build.mjs" "${godwit_web_out}"
    DEPENDS ${godwit_web_inputs} "${godwit_web_root}/build.mjs" "${godwit_web_root}/package-lock.json"
    COMMENT "Bundling the web page"
    VERBATIM)
else()
  message(STATUS "no web page in this build: GODWIT_NODE or web/node_modules is missing (./dev build brings them)")
  set(GODWIT_WEB_SOURCE "${CMAKE_SOURCE_DIR}/cmake/no_web_assets.cpp")
endif()
