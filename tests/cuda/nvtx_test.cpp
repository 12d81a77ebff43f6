// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What NVIDIA's tools receive: this program is such a tool, linked in as NVTX allows. Needs no GPU.
#if __has_include(<nvtx3/nvToolsExt.h>)
#define NVTX_NO_IMPL
#include <superoffload/cuda/nvtx.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <string>
#include <vector>

namespace {

std::vector<std::string> told;

nvtxDomainHandle_t create(char const* name) {
  told.push_back(std::string{"domain "} + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&told);
}
int push(nvtxDomainHandle_t domain, nvtxEventAttributes_t const* event) {
  CHECK(domain == reinterpret_cast<nvtxDomainHandle_t>(&told));
  told.emplace_back(event->message.ascii);
  return 0;
}
int pop(nvtxDomainHandle_t domain) {
  CHECK(domain == reinterpret_cast<nvtxDomainHandle_t>(&told));
  told.emplace_back("end");
  return 0;
}

int initialize(NvtxGetExportTableFunc_t export_table) {
  auto const* const callbacks =
      static_cast<NvtxExportTableCallbacks const*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

}  // namespace

extern "C" {
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &initialize;
}

TEST_SUITE("host") {
  TEST_CASE("while a session lives, ranges are NVTX ranges in a domain of their own") {
    namespace profile = superoffload::profile;
    {
      profile::range const before{"before"};
    }
    CHECK(told.empty());
    {
      profile::nvtx::session const first;
      profile::range const step{"step"};
      {
        profile::nvtx::session const second;
        profile::range const unit{"backward of ", "layer 3"};
      }
      profile::range const cut{"of ", std::string(200, 'x')};  // the first session still lives
    }
    { profile::range const after{"after"}; }
    if (CUDART_VERSION < 13000 && told.empty()) {
      MESSAGE("the headers of NVTX of this toolkit take no tool that is linked in");
      return;
    }
    CHECK(told == std::vector<std::string>{"domain superoffload", "step", "backward of layer 3", "end",
                                           "of " + std::string(124, 'x'), "end", "end"});
  }
}
#endif
