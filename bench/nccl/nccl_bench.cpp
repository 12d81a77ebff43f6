// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The collectives of ranks with a GPU each for the units of Llama-8B in bfloat16, compared with NCCL's own
// calls of the same sizes in the same run, one line of JSON each: nccl_bench --gpus 2. With four GPUs and
// more also those of a block among half of the ranks. Then collectives of a block concurrent with GEMMs of
// its sizes: how much of each other's rate they leave. --ctas limits the thread blocks of collectives, but
// not of NCCL's own calls.
//
// Bytes per second are those that leave or reach a GPU: of a unit, all but one part. A reduce-scatter is
// compared with the bare exchange of its parts, and with NCCL's own, which rounds at every hop.
#include <superoffload/cli/join.hpp>
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/nccl/communicator.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/zero/shard.hpp>

#include <CLI/CLI.hpp>

#include "train/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nccl.h>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace so = superoffload;

void check(ncclResult_t status, std::string_view call) {
  so::expect(status == ncclSuccess, so::exit_code::device, call,
             " failed: ", std::string_view{ncclGetErrorString(status)});
}

/// Plain use of NCCL.
class plain_nccl {
public:
  explicit plain_nccl(so::nccl::communicator& group) {
    ncclUniqueId id{};
    if (group.rank() == 0) {
      check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    }
    std::vector<ncclUniqueId> all(static_cast<std::size_t>(group.ranks()));
    group.gather(&id, all.data(), sizeof id);
    check(ncclCommInitRank(&handle_, group.ranks(), all[0], group.rank()), "ncclCommInitRank");
    ranks_ = group.ranks();
  }
  /// So many neighbours of the ranks of `all`, which is rank `rank`.
  plain_nccl(plain_nccl const& all, int rank, int neighbours) : ranks_{neighbours} {
    check(ncclCommSplit(all.handle_, rank / neighbours, rank, &handle_, nullptr), "ncclCommSplit");
  }
  plain_nccl(plain_nccl const&) = delete;
  plain_nccl& operator=(plain_nccl const&) = delete;
  ~plain_nccl() { ncclCommDestroy(handle_); }

  void all_gather(so::cuda::stream& on, void const* from, void* to, std::size_t bytes) const {
    check(ncclAllGather(from, to, bytes, ncclUint8, handle_, on.handle()), "ncclAllGather");
  }
  void all_to_all(so::cuda::stream& on, std::byte const* from, std::byte* to, std::size_t bytes) const {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < ranks_; ++r) {
      auto const part = static_cast<std::size_t>(r) * bytes;
      check(ncclSend(from + part, bytes, ncclUint8, r, handle_, on.handle()), "ncclSend");
      check(ncclRecv(to + part, bytes, ncclUint8, r, handle_, on.handle()), "ncclRecv");
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
  }
  void reduce_scatter(so::cuda::stream& on, void const* from, void* to, std::size_t count) const {
    check(ncclReduceScatter(from, to, count, ncclBfloat16, ncclSum, handle_, on.handle()),
          "ncclReduceScatter");
  }

private:
  ncclComm_t handle_ = nullptr;
  int ranks_ = 0;
};

class bench {
public:
  bench(so::cuda::device& device, so::nccl::communicator& group, int ctas)
      : group_{group},
        device_{device},
        ctas_{ctas},
        transfer_{device.urgent_stream()},
        compute_{device},
        plain_{group} {}

  /// Collectives of the unit among all ranks, or among so many neighbours, as with a copy of the weights on
  /// each host: each of them has a part of its own for every group of neighbours.
  void unit(so::autograd::unit_layout const& unit, int neighbours = 0) {
    auto const among = so::comm::neighbours(neighbours);
    int const members = among.of(group_.rank(), group_.ranks()).number;
    int const groups = group_.ranks() / members;
    std::optional<plain_nccl> split;
    if (neighbours > 0) {
      split.emplace(plain_, group_.rank(), neighbours);
    }
    auto const& plain = split ? *split : plain_;
    auto const count = so::zero::shard_elements(unit, group_.ranks());
    auto const bytes = static_cast<std::size_t>(count) * sizeof(so::bfloat16);
    auto const own = static_cast<std::size_t>(groups) * bytes, all = static_cast<std::size_t>(members) * own;
    so::buffer<so::cuda::device> const whole{device_, all}, other{device_, all}, part{device_, own};
    transfer_.fill_zero(whole.data(), whole.bytes());
    so::comm::reduce_scatter<so::bfloat16> sum{.from = whole.as<so::bfloat16>(),
                                               .to = part.as<so::bfloat16>(),
                                               .count = count,
                                               .among = among,
                                               .runs = groups};
    so::buffer<so::cuda::device> const scratch{device_, group_.scratch_bytes(sum)};
    sum.scratch = scratch.data();
    auto const compare = [&](std::string_view operation, double time, double plain_time) {
      report(neighbours > 0 ? so::concat(operation, " among ", neighbours) : std::string{operation}, unit,
             own, members, time, plain_time);
    };

    auto const gathered = seconds([&] {
      group_.queue(transfer_, so::comm::all_gather{part.data(), other.data(), bytes, among, groups});
    });
    auto const plainly_gathered =
        seconds([&] { plain.all_gather(transfer_, part.data(), other.data(), own); });
    compare("all_gather", gathered, plainly_gathered);

    auto const plainly_exchanged =
        seconds([&] { plain.all_to_all(transfer_, whole.as<std::byte>(), other.as<std::byte>(), own); });
    auto const summed = seconds([&] { group_.queue(transfer_, sum); });
    compare("reduce_scatter beside an exchange", summed, plainly_exchanged);
    auto const plainly_summed = seconds(
        [&] { plain.reduce_scatter(transfer_, whole.data(), part.data(), own / sizeof(so::bfloat16)); });
    compare("reduce_scatter", summed, plainly_summed);
  }

  /// How much of each other's rate collectives of the unit and GEMMs with so many rows and columns leave.
  void beside_gemms(so::autograd::unit_layout const& unit, std::int64_t rows, std::int64_t columns) {
    auto const count = so::zero::shard_elements(unit, group_.ranks());
    auto const bytes = static_cast<std::size_t>(count) * sizeof(so::bfloat16);
    auto const ranks = static_cast<std::size_t>(group_.ranks());
    so::buffer<so::cuda::device> const whole{device_, ranks * bytes}, part{device_, bytes};
    so::comm::reduce_scatter<so::bfloat16> sum{
        .from = whole.as<so::bfloat16>(), .to = part.as<so::bfloat16>(), .count = count};
    so::buffer<so::cuda::device> const scratch{device_, group_.scratch_bytes(sum)};
    sum.scratch = scratch.data();
    transfer_.fill_zero(whole.data(), whole.bytes());
    transfer_.fill_zero(part.data(), part.bytes());
    auto const input = numbers(rows * columns), weight = numbers(columns * columns),
               output = numbers(rows * columns);
    auto const multiply = [&] {
      launch(compute_, so::kernel::gemm<so::bfloat16>{.a = input.as<so::bfloat16>(),
                                                      .b = weight.as<so::bfloat16>(),
                                                      .c = output.as<so::bfloat16>(),
                                                      .m = rows,
                                                      .n = columns,
                                                      .k = columns,
                                                      .transpose_b = true});
    };
    auto const gather = [&] {
      group_.queue(transfer_, so::comm::all_gather{part.data(), whole.data(), bytes});
    };
    auto const reduce = [&] { group_.queue(transfer_, sum); };
    auto const gemms_alone = seconds(compute_, multiply, nothing);
    auto const flops = 2e-12 * static_cast<double>(rows) * static_cast<double>(columns * columns);
    auto const measure = [&](std::string_view operation, auto const& exchange) {
      auto const alone = seconds(transfer_, exchange, nothing);
      // The concurrent work must last longer than the timed one, even if that is slowed down by half.
      auto const longer = [](double timed, double other) {
        return static_cast<int>(std::ceil(2.0 * calls * timed / other)) + 1;
      };
      auto const exchanged = seconds(transfer_, exchange, [&] {
        for (int i = longer(alone, gemms_alone); i > 0; --i) { multiply(); }
      });
      auto const multiplied = seconds(compute_, multiply, [&] {
        for (int i = longer(gemms_alone, alone); i > 0; --i) { exchange(); }
      });
      if (group_.rank() == 0) {
        auto const moved = static_cast<double>(bytes) * (group_.ranks() - 1) * 1e-9;
        print("{\"operation\": \"", operation, " beside products\", \"unit\": \"", unit.name(),
              "\", \"gpus\": ", group_.ranks(), ", \"max_ctas\": ", ctas_,
              ", \"gigabytes_per_second\": ", moved / exchanged,
              ", \"share_of_exchange\": ", alone / exchanged, ", \"product_tflops\": ", flops / multiplied,
              ", \"share_of_products\": ", gemms_alone / multiplied, "}");
      }
    };
    measure("all_gather", gather);
    measure("reduce_scatter", reduce);
    transfer_.synchronize();
  }

private:
  static constexpr int calls = 10, runs = 7;
  static constexpr auto nothing = [] {};

  /// Not zeros: GEMMs of zeros take less power, and less time.
  so::buffer<so::cuda::device> numbers(std::int64_t count) {
    so::buffer<so::cuda::device> there{device_, static_cast<std::size_t>(count) * sizeof(so::bfloat16)};
    so::buffer<so::cuda::device> const here{device_, there.bytes(), so::memory::host};
    std::mt19937 random{1};
    for (std::int64_t i = 0; i < count; ++i) {
      here.as<so::bfloat16>()[i] = so::bfloat16(static_cast<float>(random() % 2001) * 1e-3F - 1.0F);
    }
    transfer_.copy(there.data(), here.data(), there.bytes());
    transfer_.synchronize();
    return there;
  }

  /// Seconds of one operation that follows others of its kind.
  template <class Call>
  double seconds(Call&& call) {
    return seconds(transfer_, call, nothing);
  }
  /// Seconds of one call on `stream`, with what `others` queues before on the other stream: the median of
  /// several runs, each that of the slowest rank.
  template <class Call, class Others>
  double seconds(so::cuda::stream& stream, Call&& call, Others&& others) {
    so::cuda::timed_event begin{device_}, end{device_};
    std::vector<double> times;
    for (int run = -1; run < runs; ++run) {  // once to warm up
      transfer_.synchronize();
      compute_.synchronize();
      group_.barrier();
      others();
      stream.record(begin);
      for (int i = 0; i < calls; ++i) { call(); }
      stream.record(end);
      end.wait();
      auto const own = end.seconds_since(begin) / calls;
      std::vector<double> all(static_cast<std::size_t>(group_.ranks()));
      group_.gather(&own, all.data(), sizeof own);
      if (run >= 0) {
        times.push_back(*std::max_element(all.begin(), all.end()));
      }
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[runs / 2];
  }

  /// Of a collective that `members` ranks join.
  void report(std::string_view operation, so::autograd::unit_layout const& unit, std::size_t part_bytes,
              int members, double time, double plain_time) const {
    if (group_.rank() != 0) {
      return;
    }
    auto const moved = static_cast<double>(part_bytes) * (members - 1) * 1e-9;
    print("{\"operation\": \"", operation, "\", \"unit\": \"", unit.name(), "\", \"gpus\": ", group_.ranks(),
          ", \"nccl\": \"", so::nccl::version(), "\", \"max_ctas\": ", ctas_,
          ", \"part_bytes\": ", part_bytes, ", \"microseconds\": ", 1e6 * time,
          ", \"gigabytes_per_second\": ", moved / time, ", \"nccl_microseconds\": ", 1e6 * plain_time,
          ", \"nccl_gigabytes_per_second\": ", moved / plain_time, ", \"share_of_nccl\": ", plain_time / time,
          "}");
  }

  template <class... Parts>
  static void print(Parts const&... parts) {
    std::printf("%s\n", so::concat(parts...).c_str());
    std::fflush(stdout);
  }

  so::nccl::communicator& group_;
  so::cuda::device& device_;
  int ctas_;
  so::cuda::stream transfer_, compute_;
  plain_nccl plain_;
};

void measure(so::comm::environment const& run, int ctas) {
  auto member = so::cli::join(run);
  so::nccl::options const o{.max_ctas = ctas, .ranks_of_host = so::cli::ranks_of_host(run, *member)};
  so::cuda::device device{so::nccl::gpu_of(run)};
  so::nccl::communicator group{std::move(member), device, o};
  auto config = so::bench::shapes.at("llama-8b");
  config.layers = 1;  // plus the embedding and the head
  auto const model = so::train::lay_out<so::model::llama>(config, {}, {});
  bench on{device, group, ctas};
  so::comm::abort_on_exception const guard{group};
  for (auto const& unit : model.units()) { on.unit(unit); }
  if (int const half = group.ranks() / 2; half > 1 && group.ranks() % 2 == 0) {
    on.unit(model.units()[1], half);
  }
  on.beside_gemms(model.units()[1], 4 * 2048, config.hidden);
}

}  // namespace

int main(int argc, char** argv) try {
  int gpus = 2, ctas = so::nccl::options{}.max_ctas;
  CLI::App app{"Times the collectives for the units of Llama-8B, and NCCL's own calls."};
  app.add_option("--gpus", gpus)->check(CLI::Range(2, 1024))->capture_default_str();
  app.add_option("--ctas", ctas, "thread blocks of a collective at most; 0: NCCL chooses")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  auto const run = so::comm::read_environment();
  if (!run) {
    so::nccl::expect_gpus(gpus);
    return so::comm::launch({.shared = {.ranks = gpus},
                             .processors = so::cpu::divide_processors(
                                 so::cpu::read_topology(so::cpu::allowed_processors()), gpus)},
                            "/proc/self/exe", {argv, argv + argc});
  }
  measure(*run, ctas);
  return 0;
} catch (so::error const& e) {
  std::fprintf(stderr, "nccl_bench: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
