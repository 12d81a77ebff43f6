// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A library that only reports version FAKE_NCCL_VERSION; without one, not even that.

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
