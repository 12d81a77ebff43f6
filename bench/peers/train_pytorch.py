#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of a transformers model in PyTorch, all of whose state is on the device: bf16 weights, gradients and moments, fused
AdamW. Prints one line of JSON. Needs torch and transformers."""

import job


def main():
    flags = job.parser(__doc__)
    flags.add_argument("--compile", action="store_true", help="compile every layer with torch.compile")
    flags.add_argument("--recompute", action="store_true", help="recompute every layer in backward")
    flags.add_argument("--loss_rows", type=job.positive, default=2048, help="rows whose logits exist at once")
    options = flags.parse_args()
    job.shape(options)
    if options.dry_run:
        job.say_work(options, system="PyTorch")
        return

    import torch
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    model = job.random_model(options, options.recompute)
    if options.compile:
        for layer in model.model.layers:
            layer.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, fused=options.device == "cuda")
    tokens = job.random_tokens(options)

    def loss_of(hidden, labels):
        return functional.cross_entropy((hidden @ model.lm_head.weight.t()).float(), labels, reduction="sum")

    def step():
        # All logits at once would take more memory than the rest of the step.
        hidden = model.model(input_ids=tokens).last_hidden_state[:, :-1].flatten(0, 1)
        labels = tokens[:, 1:].flatten()
        parts = zip(hidden.split(options.loss_rows), labels.split(options.loss_rows))
        loss = sum(checkpoint(loss_of, *part, use_reentrant=False) for part in parts) / labels.numel()
        loss.backward()
        if options.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    job.measure(options, step, system="torch.compile" if options.compile else "PyTorch",
                parameters=sum(one.numel() for one in model.parameters()))


if __name__ == "__main__":
    main()
