extern "C" int ggml_version(void);

extern "C" int llama_version(void) { return ggml_version(); }
