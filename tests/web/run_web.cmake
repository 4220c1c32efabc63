# cmake -DNODE= -DWEB= -DSUITE=types|unit|page -P run_web.cmake
# What is missing fails, and how to get it is said: these tests are never skipped.
if(NOT NODE OR NOT EXISTS "${NODE}")
  message(FATAL_ERROR
    "Node.js is not there: GODWIT_NODE is '${NODE}'.\n"
    "'./dev test' brings it; by hand: configure with -DGODWIT_NODE=<absolute path of node, 20 or newer>")
endif()
if(NOT EXISTS "${WEB}/node_modules/playwright-core/package.json")
  message(FATAL_ERROR
    "The npm packages of the web page's tests are not in ${WEB}/node_modules.\n"
    "'./dev test' brings them; by hand: cd web && npm ci --ignore-scripts")
endif()
if(SUITE STREQUAL "types")
  set(arguments "${WEB}/node_modules/typescript/bin/tsc" -p "${WEB}")
elseif(SUITE STREQUAL "unit")
  set(arguments --test "${WEB}/tests/unit.test.mjs")
else()
  set(arguments --test --test-concurrency=2)
  foreach(name chat trouble safety access real)
    list(APPEND arguments "${WEB}/tests/${name}.test.mjs")
  endforeach()
endif()
execute_process(COMMAND "${NODE}" ${arguments} WORKING_DIRECTORY "${WEB}" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "web.${SUITE} failed: ${status}")
endif()
