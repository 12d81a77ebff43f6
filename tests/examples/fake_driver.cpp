// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// As libcuda.so.1, an NVIDIA driver for CUDA FAKE_DRIVER_VERSION (13000: 13.0) that answers every call but
// the question for its version with the error FAKE_DRIVER_ERROR, a CUresult.
#include <cstdlib>
#include <string_view>

namespace {

int number(char const* variable) {
  char const* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

int refuse() { return number("FAKE_DRIVER_ERROR"); }

}  // namespace

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_DRIVER_VERSION");
  return 0;
}

int cuInit(unsigned) { return refuse(); }

int cuGetProcAddress_v2(char const* symbol, void** function, int, unsigned long long, int* status) {
  std::string_view const name{symbol};
  *function = name == "cuDriverGetVersion" ? reinterpret_cast<void*>(&cuDriverGetVersion)
              : name == "cuGetProcAddress" ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
                                           : reinterpret_cast<void*>(&refuse);
  if (status != nullptr) {
    *status = 0;
  }
  return 0;
}

}  // extern "C"
