/* Becomes the stand-in, and tells it what was built: the commit, the CUDA architectures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "about.h"

extern "C" int llama_version(void);
#ifdef GGML_USE_CUDA
extern "C" const char *ggml_cuda_architectures(void);
extern "C" int ggml_cuda_flash_attention(void);
#endif

int main(int count, char **arguments) {
    char build[256] = COMMIT " ";
    int is_first = 1;
    (void)count;
    if (!llama_version()) {
        return 1;
    }
#ifdef GGML_USE_CUDA
    char list[128];
    snprintf(list, sizeof list, "%s", ggml_cuda_flash_attention() ? ggml_cuda_architectures() : "");
    for (char *next = strtok(list, ","); next; next = strtok(NULL, ",")) {
        size_t length = strlen(build);
        snprintf(build + length, sizeof build - length, "%s%d", is_first ? "" : ",", atoi(next) / 10);
        is_first = 0;
    }
#endif
    (void)is_first;
    setenv("LLAMA_STAND_IN_BUILD", build, 1);
    execv(STAND_IN, arguments);
    perror(STAND_IN);
    return 127;
}
