#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of a transformers model in PyTorch, all of whose state is on the device: bf16 weights, gradients and moments, fused
AdamW. Prints one line of JSON. Needs torch and transformers."""

import pathlib

import job


def main():
    flags = job.parser(__doc__)
    flags.add_argument("--compile", action="store_true", help="compile every layer with torch.compile")
    flags.add_argument("--recompute", action="store_true", help="recompute every layer in backward")
    flags.add_argument("--loss_rows", type=job.positive, default=2048, help="rows whose logits exist at once")
    flags.add_argument("--lengths", type=pathlib.Path, help="a file with the lengths of a step's rows, as JSON, a line; each row "
                       "is padded to the longest of its step, and tokens/s are those of the rows")
    options = flags.parse_args()
    job.shape(options)
    batches = job.batches_of(options.lengths, options.warm_up + options.steps) if options.lengths else None
    del options.lengths
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
    tokens = None if batches else job.random_tokens(options)

    def padded():
        """Inputs, attention mask and labels of the steps, one after the other."""
        for lengths in batches:
            ids = job.random_tokens(options, len(lengths), max(lengths))
            mask = torch.arange(max(lengths), device=ids.device) < torch.tensor(lengths, device=ids.device)[:, None]
            yield ids, mask, ids.masked_fill(~mask, -100)

    rows = padded() if batches else None

    def loss_of(hidden, labels):
        return functional.cross_entropy((hidden @ model.lm_head.weight.t()).float(), labels, reduction="sum")

    def step():
        # All logits at once would take more memory than the rest of the step.
        ids, mask, labels = next(rows) if rows else (tokens, None, tokens)
        hidden = model.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1].flatten(0, 1)
        labels = labels[:, 1:].flatten()
        parts = zip(hidden.split(options.loss_rows), labels.split(options.loss_rows))
        loss = sum(checkpoint(loss_of, *part, use_reentrant=False) for part in parts) / (labels != -100).sum()
        loss.backward()
        if options.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    job.measure(options, step, [sum(lengths) for lengths in batches] if batches else None,
                system="torch.compile" if options.compile else "PyTorch", parameters=sum(one.numel() for one in model.parameters()))


if __name__ == "__main__":
    main()
