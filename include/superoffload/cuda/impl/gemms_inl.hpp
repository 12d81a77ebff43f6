// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/gemms.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::cuda::detail {

template <class T>
constexpr cudaDataType_t type_of = std::is_same_v<T, bfloat16> ? CUDA_R_16BF
                                   : std::is_same_v<T, float>  ? CUDA_R_32F
                                   : std::is_same_v<T, float8> ? CUDA_R_8F_E4M3
                                                               : CUDA_R_64F;

constexpr std::string_view name_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_32F:
      return "f32";
    case CUDA_R_8F_E4M3:
      return "e4m3";
    default:
      return "f64";
  }
}

struct scalars {
  float one = 1, zero = 0;
  double one_wide = 1, zero_wide = 0;

  [[nodiscard]] void const* pointer(cudaDataType_t in, bool to_one) const {
    if (in == CUDA_R_64F) {
      return to_one ? &one_wide : &zero_wide;
    }
    return to_one ? &one : &zero;
  }
};
inline constexpr scalars host_scalars;
static_assert(device::gemm_workspace_bytes == gemms::workspace_bytes + sizeof(scalars));

/// The properties of a GEMM that decide how it is computed.
struct gemms::kind {
  std::int64_t m, n, k;
  cudaDataType_t in, out;
  bool transpose_a, transpose_b, adds, biased;
  int alignment;  ///< common to all operands, in bytes, at most 16

  auto operator<=>(kind const&) const = default;

  [[nodiscard]] double operations() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  [[nodiscard]] cudaDataType_t bias_type() const { return in == CUDA_R_8F_E4M3 ? CUDA_R_16BF : in; }
  /// The rows of the result, or the dimension that a weight's gradient sums over.
  [[nodiscard]] std::int64_t tokens() const { return transpose_a ? k : m; }
  /// The same with `most` tokens at most: a part of the GEMM, on the first rows of its operands.
  [[nodiscard]] kind with_tokens(std::int64_t most) const {
    auto part = *this;
    auto& counted = transpose_a ? part.k : part.m;
    counted = std::min(counted, most);
    return part;
  }
  [[nodiscard]] tuning::kind name(std::string const& processor) const {
    return {.processor = processor,
            .family = concat(name_of(in), " to ", name_of(out), transpose_a ? ", t" : ", n",
                             transpose_b ? 't' : 'n', adds ? ", adds" : "", biased ? ", bias" : "",
                             ", aligned ", alignment, ", workspace ", gemms::workspace_bytes, ", n ", n,
                             transpose_a ? ", m " : ", k ", transpose_a ? m : k),
            .tokens = concat(tokens())};
  }
};

/// Descriptors and algorithm of one kind of GEMM; without an algorithm cuBLASLt cannot run it.
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

struct gemms::operands {
  void const* a;
  void const* b;
  void const* addend;  ///< c itself when it is added to, or when nothing is
  void* c;
  void const* bias;                  ///< null: none
  float const* a_inverse = nullptr;  ///< of numbers of 8 bits
  float const* b_inverse = nullptr;
};

SUPEROFFLOAD_INLINE int alignment_of(std::initializer_list<void const*> pointers) {
  std::uintptr_t bits = 16;
  for (auto const* const pointer : pointers) { bits |= reinterpret_cast<std::uintptr_t>(pointer); }
  return 1 << std::countr_zero(bits);
}

static_assert(sizeof(tuning::algorithm) == sizeof(cublasLtMatmulAlgo_t));

/// Milliseconds between two points of a stream.
class stopwatch {
public:
  stopwatch() {
    for (auto& event : events_) { check(cudaEventCreate(&event), "cudaEventCreate", "a measurement"); }
  }
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() {
    for (auto* const event : events_) { cudaEventDestroy(event); }
  }
  template <class Work>
  float time(CUstream_st* stream, Work const& work) {
    float milliseconds = 0;
    check(cudaEventRecord(events_[0], stream), "cudaEventRecord", "a measurement");
    work();
    check(cudaEventRecord(events_[1], stream), "cudaEventRecord", "a measurement");
    check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize", "a measurement");
    check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime",
          "a measurement");
    return milliseconds;
  }

private:
  cudaEvent_t events_[2]{};
};

/// Memory that is not in the plan: taken if some is free, and freed at once.
class spare_memory {
public:
  explicit spare_memory(std::size_t bytes) {
    if (cudaMalloc(&memory_, bytes) != cudaSuccess) {
      cudaGetLastError();
      memory_ = nullptr;
    }
  }
  spare_memory(spare_memory const&) = delete;
  spare_memory& operator=(spare_memory const&) = delete;
  ~spare_memory() { cudaFree(memory_); }
  [[nodiscard]] void* data() const { return memory_; }

private:
  void* memory_ = nullptr;
};

struct gemms::state {
  state(cuda::device& on, std::string name) : device{on}, stream{std::move(name)} {}

  cuda::device& device;
  std::string stream;
  cublasLtHandle_t handle = nullptr;
  std::string processor;  ///< and library, for which a choice of algorithms is valid
  buffer<cuda::device> workspace;
  /// Scaling factors in device memory. For a factor of c that the host knows to be 1, cuBLASLt takes a short
  /// cut (seen with 13.0 on Hopper): it rounds the GEMM's result before adding it to c, and so rounds twice.
  buffer<cuda::device> factors;
  std::map<kind, recipe> recipes;

  ~state() {
    recipes.clear();
    if (handle != nullptr) {
      cublasLtDestroy(handle);
    }
  }

  void check(cublasStatus_t status, std::string_view call) const {
    if (status != CUBLAS_STATUS_SUCCESS) {
      fail_call(call, stream, cublasLtGetStatusString(status));
    }
  }

  /// cuBLAS is column-major: there a GEMM of rows is c' = b' a', so the operands change places.
  void describe(kind const& p, recipe& r) const {
    auto const wide_type = p.in == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    auto const compute = p.in == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&r.operation, compute, wide_type), "cublasLtMatmulDescCreate");
    auto const operation = [](bool transposed) -> std::int32_t {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    if (p.adds) {  // see `factors`
      set(r, CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<std::int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
    }
    set(r, CUBLASLT_MATMUL_DESC_TRANSA, operation(p.transpose_b));
    set(r, CUBLASLT_MATMUL_DESC_TRANSB, operation(p.transpose_a));
    if (p.biased) {
      set(r, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_BIAS));
      set(r, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(p.bias_type()));
    }
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
  }

  /// The operands that belong to the description of a GEMM.
  void set_pointers(recipe& r, operands const& o) const {
    if (o.bias != nullptr) {
      set(r, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
    }
    if (o.a_inverse != nullptr) {
      set(r, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.b_inverse);
      set(r, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.a_inverse);
    }
  }

  template <class Value>
  void set(recipe& r, cublasLtMatmulDescAttributes_t attribute, Value value) const {
    check(cublasLtMatmulDescSetAttribute(r.operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  /// cuBLASLt's proposals, its favourite first. Those that need no workspace come before the others: the
  /// others draw their tiles from a counter, which takes a launch of its own to clear.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> proposals(kind const& p, recipe const& r) const {
    auto all = proposals(p, r, 0);
    auto const drawing = proposals(p, r, workspace_bytes);
    std::copy_if(drawing.begin(), drawing.end(), std::back_inserter(all), [&](auto const& algorithm) {
      return std::none_of(all.begin(), all.end(), [&](auto const& other) {
        return std::memcmp(&algorithm, &other, sizeof other) == 0;
      });
    });
    return all;
  }
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> proposals(kind const& p, recipe const& r,
                                                            std::size_t most_workspace) const {
    constexpr int most = 12;
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
    // k is not split: the parts would be added in another order, and rounded before c is added.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    for (auto const attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, static_cast<std::uint32_t>(p.alignment));
    }
    cublasLtMatmulHeuristicResult_t results[most]{};
    int found = 0;
    auto const status = cublasLtMatmulAlgoGetHeuristic(handle, r.operation, r.a, r.b, r.c, r.c, preference,
                                                       most, results, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= most_workspace) {
        algorithms.push_back(results[i].algo);
      }
    }
    return algorithms;
  }

  cublasStatus_t multiply(kind const& p, recipe const& r, cublasLtMatmulAlgo_t const& algorithm,
                          operands const& o, CUstream_st* on) const {
    auto const* const from = p.adds ? factors.as<scalars>() : &host_scalars;
    return cublasLtMatmul(handle, r.operation, from->pointer(p.in, true), o.b, r.a, o.a, r.b,
                          from->pointer(p.in, p.adds), o.addend, r.c, o.c, r.c, &algorithm, workspace.data(),
                          workspace_bytes, on);
  }

  struct timed_algorithm {
    cublasLtMatmulAlgo_t const* algorithm;
    float milliseconds;
  };

  /// Times the candidates that are close to the best again, each for `window` milliseconds, forwards and
  /// backwards in turn: a GPU at its power limit lowers its clock with the power that a kernel draws, and as
  /// it gets warmer. Drops the others. Five times the window chooses no better on an H200, and takes seconds.
  void time_at_work(kind const& p, recipe const& r, operands const& o, CUstream_st* on, stopwatch& watch,
                    std::vector<timed_algorithm>& candidates) const {
    constexpr float close = 1.02F, window = 10.0F;
    auto const best = std::min_element(candidates.begin(), candidates.end(), [](auto& a, auto& b) {
                        return a.milliseconds < b.milliseconds;
                      })->milliseconds;
    std::erase_if(candidates, [&](auto const& candidate) { return candidate.milliseconds > close * best; });
    if (candidates.size() < 2) {
      return;
    }
    auto const at_work = [&, times =
                                 static_cast<int>(window / best) + 1](cublasLtMatmulAlgo_t const& algorithm) {
      return watch.time(on, [&] {
        for (int i = 0; i < times; ++i) { check(multiply(p, r, algorithm, o, on), "cublasLtMatmul"); }
      });
    };
    at_work(*candidates.front().algorithm);
    for (auto& candidate : candidates) { candidate.milliseconds = at_work(*candidate.algorithm); }
    for (auto at = candidates.rbegin(); at != candidates.rend(); ++at) {
      at->milliseconds += at_work(*at->algorithm);
    }
  }

  /// The fastest of several algorithms, measured on the actual operands in a few rounds that drop the slow
  /// ones. If a GEMM is large enough to warm up the GPU, the rest are timed again under load.
  [[nodiscard]] cublasLtMatmulAlgo_t fastest(kind const& p, recipe const& r,
                                             std::vector<cublasLtMatmulAlgo_t> const& proposed, operands o,
                                             CUstream_st* on) const {
    constexpr int rounds = 3;
    constexpr float hopeless = 1.1F;
    constexpr double worth_settling = 1e11;
    constexpr float better = 0.99F;  // else cuBLASLt's own order decides
    // The operand that is added to must not change during the measurement.
    auto const bytes = static_cast<std::size_t>(p.m * p.n) * (p.out == CUDA_R_16BF  ? 2
                                                              : p.out == CUDA_R_32F ? 4
                                                                                    : 8);
    spare_memory const spare{o.addend == o.c && p.adds ? bytes : 0};
    if (o.addend == o.c && p.adds) {
      if (spare.data() == nullptr) {
        return proposed.front();
      }
      o.c = spare.data();
    }
    std::vector<timed_algorithm> candidates;
    for (auto const& algorithm : proposed) {
      if (multiply(p, r, algorithm, o, on) == CUBLAS_STATUS_SUCCESS) {  // loads its code, too
        candidates.push_back({&algorithm, 1e30F});
      }
    }
    if (candidates.empty()) {
      return proposed.front();
    }
    stopwatch watch;
    for (int round = 0; round < rounds; ++round) {
      float best = 1e30F;
      for (auto& candidate : candidates) {
        candidate.milliseconds = std::min(candidate.milliseconds, watch.time(on, [&] {
          check(multiply(p, r, *candidate.algorithm, o, on), "cublasLtMatmul");
        }));
        best = std::min(best, candidate.milliseconds);
      }
      std::erase_if(candidates,
                    [&](auto const& candidate) { return candidate.milliseconds > hopeless * best; });
    }
    if (p.operations() >= worth_settling) {
      time_at_work(p, r, o, on, watch, candidates);
    }
    auto chosen = candidates.front();
    for (auto const& candidate : candidates) {
      if (candidate.milliseconds < better * chosen.milliseconds) {
        chosen = candidate;
      }
    }
    return *chosen.algorithm;
  }

  /// Would cuBLASLt run it, and does it meet the conditions of `proposals`?
  [[nodiscard]] bool valid(recipe const& r, cublasLtMatmulAlgo_t const& algorithm) const {
    cublasLtMatmulHeuristicResult_t result{};
    std::uint32_t reduction = 1;
    std::size_t written = 0;
    return cublasLtMatmulAlgoCheck(handle, r.operation, r.a, r.b, r.c, r.c, &algorithm, &result) ==
               CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= workspace_bytes &&
           cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction,
                                                sizeof reduction, &written) == CUBLAS_STATUS_SUCCESS &&
           reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
  }

  /// Takes the kept choice if there is one. cuBLASLt proposes algorithms only for what is measured, or has no
  /// choice: when every batch has a length of its own, most kinds are new.
  void choose(kind const& p, recipe& r, operands const& o, CUstream_st* on) const {
    constexpr double worth_measuring = 1e10;  // about ten microseconds on a large GPU
    auto const take = [&r](std::optional<tuning::algorithm> const& choice) {
      r.found = choice.has_value();
      if (r.found) {
        r.algorithm = std::bit_cast<cublasLtMatmulAlgo_t>(*choice);
      }
    };
    auto capturing = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(on, &capturing);
    if (p.operations() >= worth_measuring && capturing == cudaStreamCaptureStatusNone) {
      auto const part = p.with_tokens(tuning::most_tokens);
      take(device.tuning().choose(
          part.name(processor),
          [&](tuning::algorithm const& kept) { return valid(r, std::bit_cast<cublasLtMatmulAlgo_t>(kept)); },
          [&] { return measured(p, part, r, o, on); }));
    }
    if (!r.found) {
      take(first_of(proposals(p, r)));
    }
  }

  /// The fastest of the proposals for `p` on `part` of it; none when cuBLASLt cannot run it.
  [[nodiscard]] std::optional<tuning::algorithm> measured(kind const& p, kind const& part, recipe const& r,
                                                          operands const& o, CUstream_st* on) const {
    auto const proposed = proposals(p, r);
    if (proposed.size() < 2) {
      return first_of(proposed);
    }
    recipe of_part;
    describe(part, of_part);
    set_pointers(of_part, o);
    return std::bit_cast<tuning::algorithm>(fastest(part, of_part, proposed, o, on));
  }

  [[nodiscard]] static std::optional<tuning::algorithm> first_of(
      std::vector<cublasLtMatmulAlgo_t> const& proposed) {
    return proposed.empty() ? std::nullopt
                            : std::optional{std::bit_cast<tuning::algorithm>(proposed.front())};
  }
};

SUPEROFFLOAD_INLINE gemms::gemms(cuda::device& device, CUstream_st* stream, std::string name)
    : state_{std::make_unique<state>(device, std::move(name))} {
  state_->check(cublasLtCreate(&state_->handle), "cublasLtCreate");
  int processors = 0;
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.ordinal()),
        "cudaDeviceGetAttribute", state_->stream);
  state_->processor = concat(device.model(), " of ", processors, ", cuBLASLt ", cublasLtGetVersion());
  state_->workspace = buffer<cuda::device>{device, workspace_bytes};
  state_->factors = buffer<cuda::device>{device, sizeof host_scalars};
  check(
      cudaMemcpyAsync(state_->factors.data(), &host_scalars, sizeof host_scalars, cudaMemcpyDefault, stream),
      "cudaMemcpyAsync", state_->stream);
}

SUPEROFFLOAD_INLINE gemms::~gemms() = default;

template <element T, element Out>
bool gemms::compute(CUstream_st* stream, kernel::gemm<T, Out> const& g) {
  // An epilogue adds one matrix at most, and of the result's type only.
  if (g.k == 0 || (g.addend != nullptr && (g.accumulate || !std::is_same_v<T, Out>))) {
    return false;
  }
  operands const o{g.a, g.b, g.addend != nullptr ? static_cast<void const*>(g.addend) : g.c, g.c, g.bias};
  return compute(stream,
                 {.m = g.m,
                  .n = g.n,
                  .k = g.k,
                  .in = type_of<T>,
                  .out = type_of<Out>,
                  .transpose_a = g.transpose_a,
                  .transpose_b = g.transpose_b,
                  .adds = g.addend != nullptr || g.accumulate,
                  .biased = g.bias != nullptr,
                  .alignment = alignment_of({g.a, g.b, g.c, o.addend, g.bias})},
                 o);
}

template <element Out>
bool gemms::compute(CUstream_st* stream, kernel::float8_gemm<Out> const& g) {
  if (g.k == 0 || (g.addend != nullptr && (g.accumulate || !std::is_same_v<bfloat16, Out>))) {
    return false;
  }
  operands const o{g.a,        g.b,    g.addend != nullptr ? static_cast<void const*>(g.addend) : g.c,
                   g.c,        g.bias, g.a_inverse,
                   g.b_inverse};
  return compute(stream,
                 {.m = g.m,
                  .n = g.n,
                  .k = g.k,
                  .in = type_of<float8>,
                  .out = type_of<Out>,
                  .transpose_a = false,
                  .transpose_b = true,
                  .adds = g.addend != nullptr || g.accumulate,
                  .biased = g.bias != nullptr,
                  .alignment = alignment_of({g.a, g.b, g.c, o.addend, g.bias})},
                 o);
}

SUPEROFFLOAD_INLINE bool gemms::compute(CUstream_st* stream, kind const& wanted, operands const& o) {
  auto const [entry, fresh] = state_->recipes.try_emplace(wanted);
  auto& r = entry->second;
  if (fresh) {
    state_->describe(wanted, r);
  }
  state_->set_pointers(r, o);
  if (fresh) {
    state_->choose(wanted, r, o, stream);
  }
  if (!r.found) {
    return false;
  }
  state_->check(state_->multiply(wanted, r, r.algorithm, o, stream), "cublasLtMatmul");
  return true;
}

SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::gemm<bfloat16> const& g) {
  return compute(stream, g);
}
SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::gemm<bfloat16, float> const& g) {
  return compute(stream, g);
}
SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::gemm<float> const& g) {
  return compute(stream, g);
}
SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::gemm<double> const& g) {
  return compute(stream, g);
}
SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::float8_gemm<bfloat16> const& g) {
  return compute(stream, g);
}
SUPEROFFLOAD_EMITTED bool gemms::run(CUstream_st* stream, kernel::float8_gemm<float> const& g) {
  return compute(stream, g);
}

}  // namespace superoffload::cuda::detail
