/* Where the real one computes. */
extern "C" int ggml_version(void) { return 1; }
