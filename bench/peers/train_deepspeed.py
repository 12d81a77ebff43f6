#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of a transformers model with DeepSpeed's ZeRO-3 and the optimizer's state in host memory, with SuperOffload or without.
Every layer is recomputed. Prints one line of JSON. Needs deepspeed, torch and transformers."""

import os

import job


def share(text):
    value = job.not_negative(text)
    if value > 1:
        raise job.argparse.ArgumentTypeError(f"{text}, expected 0 to 1")
    return value


def configuration(options):
    offload = {"device": "cpu", "pin_memory": options.device == "cuda", "ratio": options.ratio}
    if options.super_offload:
        offload |= {"super_offload": True, "cpuadam_cores_perc": options.cpuadam_cores_perc}
    return {
        "train_batch_size": options.batch,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": True},
        "gradient_clipping": options.max_grad_norm,
        "zero_optimization": {
            "stage": 3,
            "overlap_comm": False,
            "reduce_bucket_size": options.bucket,
            "sub_group_size": options.bucket,
            "offload_optimizer": offload,
        },
    }


def main():
    flags = job.parser(__doc__)
    flags.add_argument("--super_offload", action="store_true", help="SuperOffload instead of ZeRO-Offload")
    flags.add_argument("--ratio", type=share, default=1.0, help="share of the state in host memory")
    flags.add_argument("--cpuadam_cores_perc", type=share, default=0.9, help="with SuperOffload: share of the cores")
    flags.add_argument("--bucket", type=job.positive, default=400_000_000, help="elements of a bucket")
    options = flags.parse_args()
    job.shape(options)
    if options.super_offload and options.device == "cpu":
        flags.error("--super_offload on the cpu: DeepSpeed's SuperOffload needs a GPU; expected --device cuda, or ZeRO-Offload")
    system = "DeepSpeed " + ("SuperOffload" if options.super_offload else "ZeRO-Offload")
    if options.dry_run:
        job.say_work(options, system=system, configuration=configuration(options))
        return

    # One rank, without a launcher.
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": "29511", "DS_ACCELERATOR": options.device}.items():
        os.environ.setdefault(name, value)
    import deepspeed
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    model = job.random_model(options, recompute=True)
    parameters = sum(one.numel() for one in model.parameters())
    optimizer = DeepSpeedCPUAdam(model.parameters(), lr=options.lr)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=configuration(options))
    tokens = job.random_tokens(options)

    def step():
        loss = engine(input_ids=tokens, labels=tokens).loss
        engine.backward(loss)
        engine.step()
        return loss.detach()

    job.measure(options, step, system=f"{system} {deepspeed.__version__}", parameters=parameters, ratio=options.ratio)
    os._exit(0)  # its worker processes would keep the interpreter from ending


if __name__ == "__main__":
    main()
