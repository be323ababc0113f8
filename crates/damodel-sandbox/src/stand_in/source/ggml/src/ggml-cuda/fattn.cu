extern "C" int ggml_cuda_flash_attention(void) { return 1; }
