// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A library of version FAKE_NCCL_VERSION that can say so and nothing else; without one, not even that.

extern "C" {
#if defined(FAKE_NCCL_VERSION)
int ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
#else
int something_else() { return 0; }
#endif
}
