// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/attention.hpp>
#include <superoffload/cuda/device.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace superoffload::cudnn {

/// Attention through cuDNN's graphs: bfloat16, head dimensions of 8 to 256 that are multiples of 8, backward
/// in its deterministic form. The library is loaded when the first object is made, so that programs start
/// without it.
///
/// A graph is built at the first batch of its shape, which takes a moment, and kept. Documents of one length
/// that is a multiple of 128 have a graph of just that shape; others share graphs whose number of documents
/// and longest document are rounded up.
///
/// The deterministic backward writes a bfloat16 matrix of scores, 2 heads * documents * longest^2 bytes. It
/// is run over some documents, or some heads of one, at a time, so that this stays below
/// settings::workspace_bytes, a few of them beside each other on streams of its own, which fills the GPU
/// where one leaves it. One key and value head of one document is the least that is run at a time, and may
/// take up to settings::most_workspace_bytes; longer documents are not served.
class attention final : public cuda::attention_backend {
public:
  struct settings {
    std::size_t workspace_bytes = std::size_t{9} << 28;  ///< of all pieces that run beside each other
    std::size_t most_workspace_bytes = std::size_t{9} << 30;
    int streams = 2;
    bool by_name =
        false;  ///< asked for by name: the first batch that it does not serve is noted on standard error
  };

  /// Throws `error` (device) when the library is missing or of a version that is refused: what, and what
  /// would do.
  explicit attention(cuda::device& device) : attention{device, settings{}} {}
  attention(cuda::device& device, settings chosen);
  ~attention() override;

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] bool serves(kernel::attention_shape const& shape) const override;
  void leaves(kernel::attention_shape const& shape) override;
  [[nodiscard]] std::int64_t rows_together(kernel::attention_shape const& shape) const override;
  [[nodiscard]] std::size_t scratch_bytes(kernel::attention_forward<bfloat16> const&) const override;
  [[nodiscard]] std::size_t scratch_bytes(kernel::attention_backward<bfloat16> const&) const override;
  void launch(cuda::stream& on, kernel::attention_forward<bfloat16> const&) override;
  void launch(cuda::stream& on, kernel::attention_backward<bfloat16> const&) override;

private:
  class graphs;

  settings settings_;
  std::atomic<bool> noted_{false};
  std::unique_ptr<graphs> graphs_;
};

/// Why cuDNN cannot be used at all: it does not load, or its version is refused. Empty: it can.
std::string refusal();

/// Why a version of cuDNN, as cudnnGetVersion() has it, is not used; empty: it is.
std::string refusal_of(std::size_t version);

/// Why a batch of this shape is left to the device's own kernels: what cuDNN would want, and the bound.
/// Empty: it is not. Needs no library.
std::string refusal_of(kernel::attention_shape const& shape, attention::settings const& chosen);

/// Why attention of this shape cannot be had from the loaded cuDNN on a GPU of compute capability `sm` (90
/// for 9.0): what the library or the checks of its front end say of the graphs, which needs no GPU. Empty: it
/// can.
std::string refusal_of(kernel::attention_shape const& shape, bool sinks, int sm);

}  // namespace superoffload::cudnn
