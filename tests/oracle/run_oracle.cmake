# Runs one script of a pinned Python environment as a ctest fixture: cmake -DPYTHON= -DSCRIPT= -DARGUMENTS= -P run_oracle.cmake
# A missing environment fails, so that the golden tests that depend on it fail too: they are never skipped.
if(NOT PYTHON OR NOT EXISTS "${PYTHON}")
  message(FATAL_ERROR
    "The Python environment of this test is not there: '${PYTHON}'.\n"
    "'./dev test' builds it; by hand:\n"
    "  python3 -m venv build/oracle && build/oracle/bin/pip install --no-deps -r tests/oracle/requirements.txt\n"
    "  python3 -m venv build/clients && build/clients/bin/pip install --no-deps -r tests/http/requirements.txt\n"
    "then configure with -DGODWIT_ORACLE_PYTHON=<absolute path>/build/oracle/bin/python and GODWIT_CLIENTS_PYTHON alike")
endif()
# -B: no byte code beside the sources.
execute_process(COMMAND "${PYTHON}" -B "${SCRIPT}" ${ARGUMENTS} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SCRIPT} failed: ${status}")
endif()
