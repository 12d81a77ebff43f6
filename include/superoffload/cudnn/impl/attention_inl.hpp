// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The only file that includes cuDNN's front end, which is slow to compile. One source of a program includes
// this file (CMake generates it); all others include cudnn/attention.hpp.
#pragma once

// The front end is header-only. We give it a namespace of our own: the program may have another build of it.
#define cudnn_frontend superoffload_cudnn_frontend
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB

#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/document_tables.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cudnn/attention.hpp>
#include <superoffload/cudnn/choose.hpp>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the front end looks up functions here
}

namespace superoffload::cudnn {

namespace {

namespace frontend = ::cudnn_frontend;
namespace graph = frontend::graph;
using tensor = std::shared_ptr<graph::Tensor_attributes>;

std::string version_text(std::size_t version) {
  return concat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// Loads the library once: the one that the loader finds, or, if that is missing or refused, the one that the
/// build found. Returns an empty string, or why neither can be used.
std::string const& load() {
  static std::string const reason = [] {
    constexpr auto name = "libcudnn.so.9";
    std::string refused;
    for (char const* const file : {name, SUPEROFFLOAD_CUDNN_LIBRARY}) {
      void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      auto* const version = library != nullptr ? dlsym(library, "cudnnGetVersion") : nullptr;
      if (version == nullptr) {
        auto const why = printable(dlerror());
        if (refused.empty()) {
          refused = concat(std::string_view{name}, " cannot be loaded (", why,
                           "); install cuDNN 9.13 or newer, or add its directory to LD_LIBRARY_PATH");
        }
        continue;
      }
      auto const why = refusal_of(reinterpret_cast<decltype(&cudnnGetVersion)>(version)());
      if (why.empty()) {
        frontend::cudnn_dlhandle = library;
        // With several CUDA runtimes installed the front end would take the oldest; it must take the
        // program's.
        setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", concat("libcudart.so.", CUDART_VERSION / 1000).c_str(), 0);
        return why;
      }
      refused = why;
      dlclose(library);
    }
    return refused;
  }();
  return reason;
}

/// The properties that decide how a graph is built.
struct kind {
  bool backward, ragged, sinks;
  std::int64_t documents, longest;
  std::int32_t heads, kv_heads;          ///< of the graph: all heads of the arrays, or some
  std::int32_t all_heads, all_kv_heads;  ///< of the arrays
  std::int32_t head_dim, window;
  float scale;

  auto operator<=>(kind const&) const = default;
};

/// The kind for all heads of one document.
kind kind_of(kernel::attention_shape const& s, bool backward, bool sinks, bool ragged, std::int64_t longest) {
  return {.backward = backward,
          .ragged = ragged,
          .sinks = sinks && !backward,
          .documents = 1,
          .longest = longest,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .all_heads = s.heads,
          .all_kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .window = s.window,
          .scale = static_cast<float>(s.scale)};
}

enum id : std::int64_t {
  query = 1,
  key,
  value,
  out,
  d_out,
  statistics,
  d_query,
  d_key,
  d_value,
  sinks,
  lengths,
  qkv_offsets,
  out_offsets,
  statistics_offsets,
};

struct built_graph {
  graph::Graph graph;
  std::int64_t workspace = 0;
  std::unordered_map<std::int64_t, void*> pointers;
};

/// Describes the operation, its tensors and its masks; nothing is checked yet.
///
/// Queries, keys and values lie side by side in a row, and documents one after the other: the strides express
/// both. The statistics (log-sum-exp) are [documents, heads, longest] when all documents have one length,
/// else [rows, heads].
class description {
public:
  description(kind const& k, graph::Graph& g) : k_{k}, g_{g} {
    g.set_io_data_type(frontend::DataType_t::BFLOAT16)
        .set_intermediate_data_type(frontend::DataType_t::FLOAT)
        .set_compute_data_type(frontend::DataType_t::FLOAT);
    if (k.ragged) {
      constexpr auto type = frontend::DataType_t::INT64;
      of_qkv_ = vector("qkv_offsets", qkv_offsets, k.documents + 1, type);
      of_out_ = vector("out_offsets", out_offsets, k.documents + 1, type);
      of_statistics_ = vector("statistics_offsets", statistics_offsets, k.documents + 1, type);
      length_ = vector("lengths", lengths, k.documents, frontend::DataType_t::INT32);
    }
    q_ = input("query", query, k.heads, qkv_width_);
    keys_ = input("key", key, k.kv_heads, qkv_width_);
    values_ = input("value", value, k.kv_heads, qkv_width_);
    k.backward ? backward() : forward();
  }

private:
  void forward() {
    auto attributes = graph::SDPA_attributes{}.set_name("attention").set_generate_stats(true);
    configure(attributes);
    if (k_.sinks) {
      attributes.set_sink_token(g_.tensor(graph::Tensor_attributes{}
                                              .set_name("sinks")
                                              .set_uid(sinks)
                                              .set_dim({1, k_.heads, 1, 1})
                                              .set_stride({k_.heads, 1, 1, 1})
                                              .set_data_type(frontend::DataType_t::FLOAT)));
    }
    auto const [y, stats] = g_.sdpa(q_, keys_, values_, attributes);
    shape(y->set_output(true), out, k_.heads, out_width_);
    shape_statistics(stats->set_output(true));
  }

  void backward() {
    auto const y = input("out", out, k_.heads, out_width_);
    auto const d_y = input("d_out", d_out, k_.heads, out_width_);
    graph::Tensor_attributes stats;
    shape_statistics(stats.set_name("statistics"));
    // The statistics include the sinks, and these gradients need no more of them.
    auto attributes =
        graph::SDPA_backward_attributes{}.set_name("attention_backward").set_deterministic_algorithm(true);
    configure(attributes);
    auto const [d_q, d_k, d_v] = g_.sdpa_backward(q_, keys_, values_, y, d_y, g_.tensor(stats), attributes);
    shape(d_q->set_output(true), d_query, k_.heads, qkv_width_);
    shape(d_k->set_output(true), d_key, k_.kv_heads, qkv_width_);
    shape(d_v->set_output(true), d_value, k_.kv_heads, qkv_width_);
  }

  tensor vector(char const* name, id which, std::int64_t count, frontend::DataType_t type) {
    return g_.tensor(graph::Tensor_attributes{}
                         .set_name(name)
                         .set_uid(which)
                         .set_dim({count, 1, 1, 1})
                         .set_stride({1, 1, 1, 1})
                         .set_data_type(type));
  }
  tensor input(char const* name, id which, std::int32_t heads, std::int64_t width) {
    graph::Tensor_attributes t;
    shape(t.set_name(name), which, heads, width);
    return g_.tensor(t);
  }
  void shape(graph::Tensor_attributes& t, id which, std::int32_t heads, std::int64_t width) const {
    t.set_uid(which)
        .set_dim({k_.documents, heads, k_.longest, k_.head_dim})
        .set_stride({k_.longest * width, k_.head_dim, width, 1})
        .set_data_type(frontend::DataType_t::BFLOAT16);
    if (k_.ragged) {
      t.set_ragged_offset(which == out || which == d_out ? of_out_ : of_qkv_);
    }
  }
  void shape_statistics(graph::Tensor_attributes& t) const {
    t.set_uid(statistics)
        .set_dim({k_.documents, k_.heads, k_.longest, 1})
        .set_data_type(frontend::DataType_t::FLOAT);
    if (k_.ragged) {
      t.set_stride({k_.longest * k_.all_heads, 1, k_.all_heads, 1}).set_ragged_offset(of_statistics_);
    } else {
      t.set_stride({k_.heads * k_.longest, k_.longest, 1, 1});
    }
  }
  template <class Attributes>
  void configure(Attributes& attributes) const {
    attributes.set_attn_scale(k_.scale)
        .set_diagonal_alignment(frontend::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    if (k_.window > 0) {
      attributes.set_diagonal_band_left_bound(k_.window);
    }
    if (k_.ragged) {
      attributes.set_padding_mask(true).set_seq_len_q(length_).set_seq_len_kv(length_);
    }
  }

  kind const& k_;
  graph::Graph& g_;
  std::int64_t qkv_width_{std::int64_t{k_.all_heads + 2 * k_.all_kv_heads} * k_.head_dim};
  std::int64_t out_width_{std::int64_t{k_.all_heads} * k_.head_dim};
  tensor of_qkv_, of_out_, of_statistics_, length_;
  tensor q_, keys_, values_;
};

void describe(kind const& k, graph::Graph& g) { description{k, g}; }

std::string text_of(kind const& k) {
  return concat(k.backward ? "backward" : "forward", " of attention with ", k.heads, " and ", k.kv_heads,
                " heads of ", k.head_dim, ", ", k.documents, " documents of up to ", k.longest, " tokens");
}

void check(frontend::error_t status, std::string_view step, kind const& k) {
  expect(status.is_good(), exit_code::device, version_text(frontend::detail::get_backend_version()),
         " cannot ", step, " the ", text_of(k), ": ", printable(status.get_message()),
         "; use --attn_implementation flash");
}

/// At most four sizes between powers of two, so that few graphs serve all lengths.
std::int64_t rounded_length(std::int64_t longest) {
  if (longest <= 128) {
    return 128;
  }
  auto const step = std::max<std::int64_t>(
      64, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(longest - 1))) / 4);
  return (longest + step - 1) / step * step;
}

/// The shape of a batch as graphs see it.
struct geometry {
  bool ragged;
  std::int64_t documents, longest;

  explicit geometry(kernel::attention_shape const& s)
      : ragged{s.documents * s.longest != s.rows || s.longest % 128 != 0},
        documents{ragged ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(s.documents)))
                         : s.documents},
        longest{ragged ? rounded_length(s.longest) : s.longest} {}
};

/// Workspace of the deterministic backward: the scores, and the gradients of keys and values by query head.
std::int64_t backward_bytes(std::int64_t documents, std::int64_t heads, std::int64_t longest,
                            std::int64_t head_dim) {
  auto const side = (longest + 127) / 128 * 128;
  return documents * heads * side * (2 * side + 4 * head_dim + 16);
}

std::int64_t least_backward_bytes(kernel::attention_shape const& s) {
  return backward_bytes(1, s.heads / s.kv_heads, rounded_length(s.longest), s.head_dim);
}

using settings = attention::settings;

/// Upper bound of the backward's workspace: it grows with rows and longest, and holds for any documents. On
/// an H200, two streams with a quarter of a large workspace each are as fast as one with all of it.
std::int64_t backward_bound(kernel::attention_shape const& s, settings const& chosen) {
  auto const side = rounded_length(s.longest);
  auto const whole = backward_bytes(1, s.heads, side, s.head_dim) / side * (s.rows + side);
  constexpr auto plenty = std::int64_t{640} << 20;
  auto const most = static_cast<std::int64_t>(chosen.workspace_bytes);
  return std::max(least_backward_bytes(s), std::min(most, std::max(whole / 2, std::min(whole, plenty))));
}

/// How the backward is cut: how many documents and heads of keys and values a piece has, and how many pieces
/// run concurrently.
struct division {
  std::int64_t documents;
  std::int32_t kv_heads;
  int streams;
  std::int64_t bytes;  ///< of one piece
};

division division_of(kernel::attention_shape const& s, geometry const& g, settings const& chosen) {
  auto const bound = backward_bound(s, chosen);
  auto const bytes_of = [&](std::int64_t documents, std::int32_t kv_heads) {
    return backward_bytes(documents, std::int64_t{kv_heads} * (s.heads / s.kv_heads), g.longest, s.head_dim);
  };
  auto const cut = [&](std::int64_t most) -> division {
    auto documents = most / bytes_of(1, s.kv_heads);
    if (documents > 0) {
      if (g.ragged) {
        documents = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(documents)));
      }
      documents = std::min(documents, g.documents);
      auto const pieces = (g.documents + documents - 1) / documents;
      documents = (g.documents + pieces - 1) / pieces;
      return {documents, s.kv_heads, 1, bytes_of(documents, s.kv_heads)};
    }
    auto kv_heads = s.kv_heads;
    while (kv_heads > 1 && (s.kv_heads % kv_heads != 0 || bytes_of(1, kv_heads) > most)) { --kv_heads; }
    return {1, kv_heads, 1, bytes_of(1, kv_heads)};
  };
  auto whole = cut(bound);
  if (whole.documents >= g.documents && whole.kv_heads == s.kv_heads) {
    return whole;
  }
  auto pieces = cut(bound / chosen.streams);
  pieces.streams = static_cast<int>(std::clamp<std::int64_t>(bound / pieces.bytes, 1, chosen.streams));
  return pieces;
}

/// Forward needs some bytes for each multiprocessor.
constexpr std::size_t forward_bytes = std::size_t{1} << 20;

constexpr std::int64_t most_documents = 1024;
/// A batch whose backward would need more pieces is faster in one kernel.
constexpr std::int64_t most_calls = 32;

constexpr std::size_t alignment = 256;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
constexpr std::size_t tables_bytes =
    aligned(most_documents * sizeof(std::int32_t)) + 3 * aligned((most_documents + 1) * sizeof(std::int64_t));

}  // namespace

std::string refusal() { return load(); }

std::string refusal_of(std::size_t version) {
  auto const refuse = [&](std::string_view why) {
    return concat(version_text(version), " ", why, "; expected 9.13.0 or newer, but not 9.14.0");
  };
  if (version / 10000 != 9) {
    return refuse("is of another major version");
  }
  if (version == 91000 || version == 91001) {
    return refuse("computes attention wrongly");
  }
  if (version < 91300) {
    return refuse("is too old");
  }
  if (version == 91400) {
    return refuse("is wrong for windows over long documents");
  }
  return {};
}

std::string refusal_of(kernel::attention_shape const& s, bool with_sinks, int sm) {
  if (auto const& reason = load(); !reason.empty()) {
    return reason;
  }
  for (bool const backward : {false, true}) {
    for (bool const ragged : {false, true}) {
      auto const k = kind_of(s, backward, with_sinks, ragged, 256);
      graph::Graph g;
      g.set_sm_version(sm);
      describe(k, g);
      if (auto status = g.validate(); status.is_bad()) {
        return concat(version_text(frontend::detail::get_backend_version()), " has no ", text_of(k),
                      " on this GPU: ", printable(status.get_message()));
      }
    }
  }
  return {};
}

std::string attend(cuda::device& device, kernel::attention_shape const& shape, bool sinks, bool by_name) {
  auto const property = [&](cudaDeviceAttr which) {
    int value = 0;
    cuda::detail::check(cudaDeviceGetAttribute(&value, which, device.ordinal()), "cudaDeviceGetAttribute",
                        concat("CUDA device ", device.ordinal()));
    return value;
  };
  auto const sm =
      10 * property(cudaDevAttrComputeCapabilityMajor) + property(cudaDevAttrComputeCapabilityMinor);
  attention::settings const chosen{.by_name = by_name};
  auto reason = refusal_of(shape, sinks, sm);
  if (reason.empty() && by_name) {
    reason = refusal_of(shape, chosen);
    if (!reason.empty()) {
      reason += "; use --attn_implementation auto or flash, or smaller batches of shorter documents";
    }
  }
  if (reason.empty()) {
    device.attend_with(std::make_unique<attention>(device, chosen));
  }
  return reason;
}

class attention::graphs {
public:
  graphs(cuda::device& device, int streams) : forked_{device} {
    for (int i = 1; i < streams; ++i) {
      beside_.emplace_back(device);
      joined_.emplace_back(device);
    }
    device.activate();
    expect(frontend::detail::create_handle(&handle_) == CUDNN_STATUS_SUCCESS, exit_code::device,
           version_text(frontend::detail::get_backend_version()), " cannot use CUDA device ",
           device.ordinal(), "; use --attn_implementation flash");
  }
  graphs(graphs const&) = delete;
  graphs& operator=(graphs const&) = delete;
  ~graphs() {
    built_.clear();
    frontend::detail::destroy_handle(handle_);
  }

  /// Runs the graph of this kind, building it if needed, on the pointers that `bind(map)` sets.
  template <class Bind>
  void run(cuda::stream& on, kind const& k, kernel::scratch_memory workspace, Bind&& bind) {
    std::lock_guard const lock{mutex_};
    run_on(on, k, workspace, bind);
  }

  /// The same for pieces that write to different memory: `each(piece)` calls piece(kind, bind) for each of
  /// them. They run on a few streams in turn, each with its share of the workspace. Work queued on `on` later
  /// runs after all of them.
  template <class Each>
  void run_beside(cuda::stream& on, int streams, kernel::scratch_memory workspace, Each&& each) {
    std::lock_guard const lock{mutex_};
    auto const used = static_cast<std::size_t>(streams);
    auto const share = workspace.bytes / used / alignment * alignment;
    on.record(forked_);
    for (std::size_t i = 1; i < used; ++i) { beside_[i - 1].wait(forked_); }
    std::size_t turn = 0;
    each([&](kind const& k, auto&& bind) {
      auto* const at = static_cast<std::byte*>(workspace.data) + turn * share;
      run_on(turn == 0 ? on : beside_[turn - 1], k, {at, share}, bind);
      turn = (turn + 1) % used;
    });
    for (std::size_t i = 1; i < used; ++i) {
      beside_[i - 1].record(joined_[i - 1]);
      on.wait(joined_[i - 1]);
    }
  }

private:
  template <class Bind>
  void run_on(cuda::stream& on, kind const& k, kernel::scratch_memory workspace, Bind&& bind) {
    auto& g = of(k);
    expect(std::cmp_less_equal(g.workspace, workspace.bytes), exit_code::internal,
           version_text(frontend::detail::get_backend_version()), " wants a workspace of ", g.workspace,
           " bytes for the ", text_of(k), ", but ", workspace.bytes,
           " were planned; use --attn_implementation flash");
    bind(g.pointers);
    frontend::detail::set_stream(handle_, on.handle());
    check(g.graph.execute(handle_, g.pointers, workspace.data), "run", k);
  }

  built_graph& of(kind const& k) {
    auto& entry = built_[k];
    if (!entry) {
      auto made = std::make_unique<built_graph>();
      auto& g = made->graph;
      describe(k, g);
      check(g.validate(), "take", k);
      check(g.build_operation_graph(handle_), "take", k);
      check(g.create_execution_plans({frontend::HeurMode_t::A}), "plan", k);
      check(g.check_support(), "plan", k);
      check(g.build_plans(frontend::BuildPlanPolicy_t::HEURISTICS_CHOICE), "build", k);
      check(g.get_workspace_size(made->workspace), "plan", k);
      entry = std::move(made);
    }
    return *entry;
  }

  std::mutex mutex_;
  std::deque<cuda::stream> beside_;
  cuda::event forked_;
  std::deque<cuda::event> joined_;
  cudnnHandle_t handle_ = nullptr;
  std::map<kind, std::unique_ptr<built_graph>> built_;
};

attention::attention(cuda::device& device, settings chosen) : settings_{chosen} {
  auto const& reason = load();
  expect(reason.empty(), exit_code::device, reason);
  graphs_ = std::make_unique<graphs>(device, settings_.streams);
}

attention::~attention() = default;

std::string attention::name() const { return version_text(frontend::detail::get_backend_version()); }

std::string refusal_of(kernel::attention_shape const& s, attention::settings const& chosen) {
  if (s.dropout.dropped > 0) {
    return "cuDNN's attention is not used with dropout";  // cuDNN has a random generator of its own
  }
  if (s.head_dim % 8 != 0 || s.head_dim > 256) {
    return concat("cuDNN has no attention for heads of ", s.head_dim, ": expected a multiple of 8 up to 256");
  }
  if (s.rows == 0) {
    return "there are no tokens";
  }
  if (s.documents > most_documents) {
    return concat("a batch of ", s.documents, " documents: cuDNN is given at most ", most_documents);
  }
  if (auto const bytes = least_backward_bytes(s); std::cmp_greater(bytes, chosen.most_workspace_bytes)) {
    return concat("a document of ", s.longest, " tokens with ", s.heads / s.kv_heads,
                  " query heads to one of keys: cuDNN's deterministic backward would take ", bytes >> 20,
                  " MiB, expected at most ", chosen.most_workspace_bytes >> 20);
  }
  auto const by = division_of(s, geometry{s}, chosen);
  auto const pieces =
      (s.documents + by.documents - 1) / by.documents * static_cast<std::int64_t>(s.kv_heads / by.kv_heads);
  if (pieces > most_calls) {
    return concat("a batch of ", s.documents, " documents of up to ", s.longest,
                  " tokens: cuDNN's deterministic backward would run in ", pieces,
                  " pieces, expected at most ", most_calls);
  }
  return {};
}

bool attention::supports(kernel::attention_shape const& s) const { return refusal_of(s, settings_).empty(); }

void attention::declined(kernel::attention_shape const& s) {
  if (settings_.by_name && s.rows > 0 && !noted_.exchange(true)) {
    log(log_level::note, refusal_of(s, settings_),
        "; the device's own kernels compute it, and others like it");
  }
}

namespace {

/// The scratch memory of a call: tables of documents, sinks in float, and the rest for the library.
struct partition {
  cuda::document_tables tables{};
  float* sinks = nullptr;
  kernel::scratch_memory workspace;

  partition(kernel::attention_shape const& s, geometry const& g, kernel::scratch_memory scratch) {
    auto* at = static_cast<std::byte*>(scratch.data);
    auto const take = [&](std::size_t bytes) { return std::exchange(at, at + aligned(bytes)); };
    tables = {.starts = s.starts,
              .documents = s.documents,
              .padded = g.documents,
              .lengths = reinterpret_cast<std::int32_t*>(take(most_documents * sizeof(std::int32_t))),
              .widths = {s.qkv_columns(), std::int64_t{s.heads} * s.head_dim, s.heads},
              .offsets = {}};
    for (auto& offsets : tables.offsets) {
      offsets = reinterpret_cast<std::int64_t*>(take((most_documents + 1) * sizeof(std::int64_t)));
    }
    sinks = reinterpret_cast<float*>(take(static_cast<std::size_t>(s.heads) * sizeof(float)));
    auto const taken = static_cast<std::size_t>(at - static_cast<std::byte*>(scratch.data));
    expect(taken <= scratch.bytes, exit_code::internal, "attention got ", scratch.bytes,
           " bytes of scratch memory, but scratch_bytes() asks for more");
    workspace = {at, scratch.bytes - taken};
  }
};

std::size_t besides_workspace(kernel::attention_shape const& s) {
  return tables_bytes + aligned(static_cast<std::size_t>(s.heads) * sizeof(float));
}

/// Casts a pointer: a graph's outputs are never its inputs.
template <class T>
void* untyped(T const* pointer) {
  return const_cast<T*>(pointer);
}

}  // namespace

std::size_t attention::scratch_bytes(kernel::attention_forward<bfloat16> const& a) const {
  return besides_workspace(a.shape) + forward_bytes;
}

std::size_t attention::scratch_bytes(kernel::attention_backward<bfloat16> const& a) const {
  if (a.shape.rows == 0) {
    return 0;
  }
  auto const bound =
      std::min(backward_bound(a.shape, settings_), static_cast<std::int64_t>(settings_.most_workspace_bytes));
  return besides_workspace(a.shape) + static_cast<std::size_t>(bound);
}

std::int64_t attention::rows_together(kernel::attention_shape const& s) const {
  return geometry{s}.ragged ? 1 : s.longest;
}

void attention::launch(cuda::stream& on, kernel::attention_forward<bfloat16> const& a) {
  auto const& s = a.shape;
  geometry const g{s};
  partition const memory{s, g, a.scratch};
  on.activate();
  if (g.ragged) {
    fill(on, memory.tables);
  }
  if (a.sinks != nullptr) {
    cuda::launch(on, kernel::convert<bfloat16, float>{.from = a.sinks, .to = memory.sinks, .count = s.heads});
  }
  auto k = kind_of(s, false, a.sinks != nullptr, g.ragged, g.longest);
  k.documents = g.documents;
  graphs_->run(on, k, memory.workspace, [&](auto& pointers) {
    pointers[query] = untyped(a.qkv);
    pointers[key] = untyped(a.qkv + std::int64_t{s.heads} * s.head_dim);
    pointers[value] = untyped(a.qkv + std::int64_t{s.heads + s.kv_heads} * s.head_dim);
    pointers[out] = a.out;
    pointers[statistics] = a.log_sum_exp;
    if (g.ragged) {
      pointers[lengths] = memory.tables.lengths;
      pointers[qkv_offsets] = memory.tables.offsets[0];
      pointers[out_offsets] = memory.tables.offsets[1];
      pointers[statistics_offsets] = memory.tables.offsets[2];
    }
    if (a.sinks != nullptr) {
      pointers[sinks] = memory.sinks;
    }
  });
}

void attention::launch(cuda::stream& on, kernel::attention_backward<bfloat16> const& a) {
  auto const& s = a.shape;
  geometry const g{s};
  partition const memory{s, g, a.scratch};
  auto const by = division_of(s, g, settings_);
  auto const heads_by_kv = s.heads / s.kv_heads;
  on.activate();
  if (g.ragged) {
    fill(on, memory.tables);
  }
  graphs_->run_beside(on, by.streams, memory.workspace, [&](auto&& piece) {
    for (std::int64_t document = 0; document < s.documents; document += by.documents) {
      for (std::int32_t kv_head = 0; kv_head < s.kv_heads; kv_head += by.kv_heads) {
        auto const head = kv_head * heads_by_kv;
        auto k = kind_of(s, true, false, g.ragged, g.longest);
        k.documents = std::min(by.documents, g.documents - document);
        k.kv_heads = by.kv_heads;
        k.heads = by.kv_heads * heads_by_kv;
        piece(k, [&](auto& pointers) {
          auto const row = g.ragged ? 0 : document * s.longest;
          auto const in_qkv = [&](std::int64_t first_head) {
            return row * s.qkv_columns() + first_head * s.head_dim;
          };
          auto const in_out = (row * s.heads + head) * s.head_dim;
          auto const in_keys = in_qkv(s.heads + kv_head);
          auto const in_values = in_qkv(s.heads + s.kv_heads + kv_head);
          pointers[query] = untyped(a.qkv + in_qkv(head));
          pointers[key] = untyped(a.qkv + in_keys);
          pointers[value] = untyped(a.qkv + in_values);
          pointers[out] = untyped(a.out + in_out);
          pointers[d_out] = untyped(a.d_out + in_out);
          pointers[statistics] =
              untyped(a.log_sum_exp + (g.ragged ? head : row * s.heads + std::int64_t{head} * s.longest));
          pointers[d_query] = a.d_qkv + in_qkv(head);
          pointers[d_key] = a.d_qkv + in_keys;
          pointers[d_value] = a.d_qkv + in_values;
          if (g.ragged) {
            pointers[lengths] = memory.tables.lengths + document;
            pointers[qkv_offsets] = memory.tables.offsets[0] + document;
            pointers[out_offsets] = memory.tables.offsets[1] + document;
            pointers[statistics_offsets] = memory.tables.offsets[2] + document;
          }
        });
      }
    }
  });
}

}  // namespace superoffload::cudnn
