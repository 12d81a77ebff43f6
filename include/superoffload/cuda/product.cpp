// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/product.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <cublasLt.h>
#include <map>
#include <type_traits>
#include <utility>

namespace superoffload::cuda::detail {

namespace {

template <element T>
constexpr cudaDataType_t type_of = std::is_same_v<T, bfloat16> ? CUDA_R_16BF
                                   : std::is_same_v<T, float>  ? CUDA_R_32F
                                                               : CUDA_R_64F;

struct ones {
  float single = 1;
  double twice = 1;
};

/// What decides how a product is computed.
struct kind {
  std::int64_t m, n, k;
  cudaDataType_t in, out;
  bool transpose_a, transpose_b, adds;
  int alignment;  ///< common to all operands, in bytes, at most 16

  auto operator<=>(kind const&) const = default;
};

/// Descriptors and algorithm of one kind of product; without an algorithm cuBLASLt has none.
struct recipe {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool found = false;

  recipe() = default;
  recipe(recipe const&) = delete;
  recipe& operator=(recipe const&) = delete;
  ~recipe() {
    cublasLtMatmulDescDestroy(operation);
    for (auto* const layout : {a, b, c}) { cublasLtMatrixLayoutDestroy(layout); }
  }
};

int alignment_of(std::initializer_list<void const*> pointers) {
  std::uintptr_t bits = 16;
  for (auto const* const pointer : pointers) { bits |= reinterpret_cast<std::uintptr_t>(pointer); }
  return 1 << std::countr_zero(bits);
}

}  // namespace

struct products::state {
  std::string stream;
  cublasLtHandle_t handle = nullptr;
  buffer<device> workspace;
  /// 1 in device memory, as float and as double. A factor of c that the host does not know keeps cuBLASLt
  /// from a short cut that it takes for 1 (seen with 13.0 on Hopper): the product, rounded, is added to c in
  /// memory, and so rounded twice.
  buffer<device> one;
  std::map<kind, recipe> recipes;

  ~state() {
    recipes.clear();
    if (handle != nullptr) {
      cublasLtDestroy(handle);
    }
  }

  void check(cublasStatus_t status, std::string_view call) const {
    expect(status == CUBLAS_STATUS_SUCCESS, exit_code::device, call, " on ", stream,
           " failed: ", std::string_view{cublasLtGetStatusString(status)});
  }

  /// Column-major, as cuBLAS has it, a product of rows is c' = b' a': the operands change places.
  void choose(kind const& p, recipe& r) const {
    auto const wide_type = p.in == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    auto const compute = p.in == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&r.operation, compute, wide_type), "cublasLtMatmulDescCreate");
    auto const set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      check(cublasLtMatmulDescSetAttribute(r.operation, attribute, &value, sizeof value),
            "cublasLtMatmulDescSetAttribute");
    };
    auto const operation = [](bool transposed) -> std::int32_t {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    if (p.adds) {  // see `one`
      set(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<std::int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
    }
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.transpose_b));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.transpose_a));
    auto const layout = [&](cublasLtMatrixLayout_t& to, cudaDataType_t type, std::int64_t rows,
                            std::int64_t columns, bool transposed) {
      if (transposed) {
        std::swap(rows, columns);
      }
      check(cublasLtMatrixLayoutCreate(&to, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), rows),
            "cublasLtMatrixLayoutCreate");
    };
    layout(r.a, p.in, p.n, p.k, p.transpose_b);
    layout(r.b, p.in, p.k, p.m, p.transpose_a);
    layout(r.c, p.out, p.n, p.m, false);

    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    // k is not split: pieces would be added in an order of their own, and rounded before c is added to.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    for (auto const attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, static_cast<std::uint32_t>(p.alignment));
    }
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    auto const status =
        cublasLtMatmulAlgoGetHeuristic(handle, r.operation, r.a, r.b, r.c, r.c, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    r.found = status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
    r.algorithm = best.algo;
  }
};

products::products(device& device, CUstream_st* stream, std::string name)
    : state_{std::make_unique<state>()} {
  state_->stream = std::move(name);
  state_->check(cublasLtCreate(&state_->handle), "cublasLtCreate");
  state_->workspace = buffer<cuda::device>{device, workspace_bytes};
  static constexpr ones host_ones;
  state_->one = buffer<cuda::device>{device, sizeof host_ones};
  detail::check(cudaMemcpyAsync(state_->one.data(), &host_ones, sizeof host_ones, cudaMemcpyDefault, stream),
                "cudaMemcpyAsync", state_->stream);
}

products::~products() = default;

template <element T, element Out>
bool products::run(CUstream_st* stream, kernel::gemm<T, Out> const& g) {
  // Two matrices to add, or one of another type, are more than one epilogue takes; and it would round before
  // it adds a bias.
  if (g.k == 0 || g.bias != nullptr || (g.addend != nullptr && (g.accumulate || !std::is_same_v<T, Out>))) {
    return false;
  }
  void const* const addend = g.addend != nullptr ? static_cast<void const*>(g.addend) : g.c;
  bool const adds = g.addend != nullptr || g.accumulate;
  kind const wanted{.m = g.m,
                    .n = g.n,
                    .k = g.k,
                    .in = type_of<T>,
                    .out = type_of<Out>,
                    .transpose_a = g.transpose_a,
                    .transpose_b = g.transpose_b,
                    .adds = adds,
                    .alignment = alignment_of({g.a, g.b, g.c, addend})};
  auto const [place, fresh] = state_->recipes.try_emplace(wanted);
  auto& r = place->second;
  if (fresh) {
    state_->choose(wanted, r);
  }
  if (!r.found) {
    return false;
  }
  wide<T> const one = 1;
  wide<T> const zero = 0;
  auto const* const device_ones = state_->one.as<ones>();
  void const* const device_one =
      std::is_same_v<T, double> ? static_cast<void const*>(&device_ones->twice) : &device_ones->single;
  state_->check(cublasLtMatmul(state_->handle, r.operation, adds ? device_one : &one, g.b, r.a, g.a, r.b,
                               adds ? device_one : &zero, addend, r.c, g.c, r.c, &r.algorithm,
                               state_->workspace.data(), workspace_bytes, stream),
                "cublasLtMatmul");
  return true;
}

template bool products::run(CUstream_st*, kernel::gemm<bfloat16> const&);
template bool products::run(CUstream_st*, kernel::gemm<bfloat16, float> const&);
template bool products::run(CUstream_st*, kernel::gemm<float> const&);
template bool products::run(CUstream_st*, kernel::gemm<double> const&);

}  // namespace superoffload::cuda::detail
