file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/check.cu "int main() { return 0; }\n")
execute_process(
    COMMAND ${NVCC} ${NVCC_FLAGS} -c ${CMAKE_BINARY_DIR}/CMakeFiles/check.cu -o ${CMAKE_BINARY_DIR}/CMakeFiles/check.o
    RESULT_VARIABLE CHECK OUTPUT_VARIABLE CHECK_OUTPUT ERROR_VARIABLE CHECK_OUTPUT)
if (NOT CHECK STREQUAL "0")
    message(FATAL_ERROR "The CUDA compiler\n  \"${NVCC}\"\nis broken: it is not able to compile a simple test program.\nIt fails with the following output:\n  ${CHECK_OUTPUT} ${CHECK}")
endif()
message(STATUS "Check for working CUDA compiler: ${NVCC} - works")
