/* Where the real one computes. */
int ggml_version(void) { return 1; }
