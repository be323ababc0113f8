// The architectures that this is compiled for, times ten, as nvcc tells them.
#define TEXT(...) #__VA_ARGS__
#define TEXT_OF(...) TEXT(__VA_ARGS__)

extern "C" const char *ggml_cuda_architectures(void) { return TEXT_OF(__CUDA_ARCH_LIST__); }
