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

/// Attention through cuDNN's graphs: bfloat16, head dimensions of 8 to 256 that are multiples of 8, the
/// deterministic backward. The library is loaded when the first object is created, so that programs start
/// without it.
///
/// A graph is built at the first batch of its shape, which takes a moment, and kept. Documents that all have
/// the same length, a multiple of 128, get a graph of exactly that shape. Other batches share graphs: their
/// number of documents and longest document are rounded up.
///
/// The deterministic backward writes a bfloat16 matrix of scores, 2 heads * documents * longest^2 bytes. To
/// keep this below settings::workspace_bytes, it runs over some documents, or some heads of one document, at
/// a time. A few such pieces run concurrently on streams of its own, to fill the GPU. The smallest piece is
/// one key and value head of one document; it may take up to settings::most_workspace_bytes. Longer documents
/// are not supported.
class attention final : public cuda::attention_backend {
public:
  /// Limits on memory and concurrency of the backward.
  struct settings {
    std::size_t workspace_bytes = std::size_t{9} << 28;       ///< of all pieces that run concurrently
    std::size_t most_workspace_bytes = std::size_t{9} << 30;  ///< limit of the smallest piece
    int streams = 2;       ///< that the pieces of a backward share, the caller's included
    bool by_name = false;  ///< asked for by name: a note on standard error names the first batch that cuDNN
                           ///< does not compute
  };

  /// Throws `error` (device) when the library is missing or its version is refused; the message says why, and
  /// what to install.
  explicit attention(cuda::device& device) : attention{device, settings{}} {}
  /// The same with chosen limits.
  attention(cuda::device& device, settings chosen);
  ~attention() override;

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] bool supports(kernel::attention_shape const& shape) const override;
  void declined(kernel::attention_shape const& shape) override;
  [[nodiscard]] std::int64_t rows_together(kernel::attention_shape const& shape) const override;
  [[nodiscard]] std::size_t scratch_bytes(kernel::attention_forward<bfloat16> const&) const override;
  /// The same for a backward: tables, and the scores of the pieces that run at once.
  [[nodiscard]] std::size_t scratch_bytes(kernel::attention_backward<bfloat16> const&) const override;
  void launch(cuda::stream& on, kernel::attention_forward<bfloat16> const&) override;
  /// The same for a backward.
  void launch(cuda::stream& on, kernel::attention_backward<bfloat16> const&) override;

private:
  class graphs;

  settings settings_;
  std::atomic<bool> noted_{false};
  std::unique_ptr<graphs> graphs_;
};

/// Why cuDNN cannot be used at all: it does not load, or its version is refused. Empty when it can.
std::string refusal();

/// Why a version of cuDNN, as from cudnnGetVersion(), is refused; empty when it is not.
std::string refusal_of(std::size_t version);

/// Why the device's own kernels compute a batch of this shape instead: what cuDNN would need, and the limit.
/// Empty when cuDNN computes it. Needs no library.
std::string refusal_of(kernel::attention_shape const& shape, attention::settings const& chosen);

/// Why the loaded cuDNN has no attention of this shape on a GPU of compute capability `sm` (90 for 9.0), as
/// the library or the checks of its front end say; empty when it has. Needs no GPU.
std::string refusal_of(kernel::attention_shape const& shape, bool sinks, int sm);

}  // namespace superoffload::cudnn
