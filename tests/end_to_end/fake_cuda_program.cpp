// A program that uses CUDA and knows nothing of lanescope; test_cli_native_recording.py runs it
// with the fake driver. Two kernels.
extern "C" {
int cuInit(unsigned flags);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuCtxSynchronize();
}

int main() {
  if (cuInit(0) != 0) return 3;
  for (int i = 0; i < 2; ++i)
    cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  cuCtxSynchronize();
  return 5;
}
