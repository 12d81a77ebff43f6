#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Tests the scripts of bench/peers, and the one that runs them on real rows, without a GPU: peers.py [--programs DIR]

Their flags and what they refuse, without PyTorch; that our fine-tuner reads DeepSpeed's configuration; and where torch and
transformers are installed, some steps of the bundled small Llama on the CPU, whose losses must fall from that of a guess.
"""

import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench/peers"
PROGRAMS = pathlib.Path(sys.argv.pop()) if sys.argv[1:2] == ["--programs"] else None
del sys.argv[1:]


def run(script, *flags):
    return subprocess.run([sys.executable, PEERS / script, *flags], capture_output=True, text=True, timeout=600)


class Peers(unittest.TestCase):
    def work(self, script, *flags):
        done = run(script, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_work(self):
        work = self.work("train_pytorch.py", "--dry_run", "--layers", "8", "--seq", "4096")
        self.assertEqual((work["model_type"], work["layers"], work["batch"], work["seq"]), ("llama", 8, 4, 4096))
        self.assertEqual(work["system"], "PyTorch")
        self.assertEqual(self.work("train_deepspeed.py", "--dry_run")["layers"], 32)

    def test_configuration(self):
        work = self.work("train_deepspeed.py", "--dry_run", "--super_offload", "--ratio", "0.9", "--max_grad_norm", "1")
        offload = work["configuration"]["zero_optimization"]["offload_optimizer"]
        self.assertEqual((offload["ratio"], offload["super_offload"]), (0.9, True))
        self.assertEqual(work["configuration"]["gradient_clipping"], 1)
        self.assertNotIn("super_offload", self.work("train_deepspeed.py", "--dry_run")["configuration"]["zero_optimization"]
                         ["offload_optimizer"])

    @unittest.skipUnless(PROGRAMS, "needs the programs")
    def test_the_fine_tuner_reads_the_configuration(self):
        for flags in ([], ["--super_offload", "--ratio", "0.5"]):
            work = self.work("train_deepspeed.py", "--dry_run", *flags)
            with tempfile.TemporaryDirectory() as scratch:
                file = pathlib.Path(scratch) / "ds.json"
                file.write_text(json.dumps(work["configuration"]))
                done = subprocess.run([PROGRAMS / "finetune_llama", "--model", ROOT / "tests/data/configs/llama-8b", "--dataset",
                                       "none", "--output_dir", scratch, "--deepspeed_config", file, "--dry_run", "--hardware",
                                       ROOT / "bench/hardware/gb200.json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_refuses(self):
        for script, *flags in (("train_pytorch.py", "--batch", "0"), ("train_pytorch.py", "--lr", "-1"),
                               ("train_pytorch.py", "--device", "tpu"), ("train_deepspeed.py", "--ratio", "1.5"),
                               ("train_deepspeed.py", "--super_offload", "--ratio", "nan"), ("train_deepspeed.py", "--unknown"),
                               ("train_deepspeed.py", "--super_offload", "--device", "cpu"),
                               ("train_pytorch.py", "--model", "nothing")):
            done = run(script, *flags, "--dry_run")
            self.assertNotEqual(done.returncode, 0, f"{script} {flags}")
            self.assertNotIn("Traceback", done.stderr)

    def test_refuses_lengths(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "lengths.jsonl"
            for text in ("", "[]\n", "[12, 1]\n", "[12, 3.5]\n", "12\n", "[12,\n"):
                file.write_text(text)
                done = run("train_pytorch.py", "--lengths", file, "--dry_run")
                self.assertNotEqual(done.returncode, 0, text)
                self.assertIn("expected a list of lengths", done.stderr)
            file.write_text("[12, 340]\n[5, 6, 7]\n")
            self.assertNotIn("lengths", self.work("train_pytorch.py", "--lengths", file, "--dry_run"))

    def test_commands_on_real_rows(self):
        done = subprocess.run([sys.executable, ROOT / "bench/train/real_rows.py", "--peer", "--dry_run"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        commands = [json.loads(line)["command"] for line in done.stdout.splitlines()]
        programs = [pathlib.Path(command[0]).name for command in commands]
        self.assertEqual((programs.count("finetune_llama"), programs.count("bench_train")), (5, 4))
        self.assertEqual(sum(word.endswith("train_pytorch.py") for command in commands for word in command), 2)

    @unittest.skipUnless(PROGRAMS, "needs the programs")
    def test_fine_tunes_on_real_rows(self):
        spec = importlib.util.spec_from_file_location("real_rows", ROOT / "bench/train/real_rows.py")
        real_rows = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(real_rows)
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            model, rows = scratch / "model", scratch / "rows.json"
            config = json.loads((ROOT / "examples/models/tiny_llama/config.json").read_text())
            real_rows.write_model(model, config)
            real_rows.write_log_normal(rows)
            done = subprocess.run([PROGRAMS / "finetune_llama", "--model", model, "--dataset", rows, "--output_dir",
                                   scratch / "out", "--max_steps", "2", "--max_length", "128", "--batch_size", "2", "--export",
                                   "off"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            loss = float(done.stderr.split("step 1/2  loss ")[1].split()[0])
            self.assertAlmostEqual(loss, math.log(config["vocab_size"]), delta=0.3)

    @unittest.skipUnless(all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
                         "needs torch and transformers")
    def test_steps_on_the_cpu(self):
        model = ROOT / "examples/models/tiny_llama"
        result = self.work("train_pytorch.py", "--model", model, "--device", "cpu", "--batch", "2", "--seq", "64", "--steps",
                           "2", "--lr", "1e-3", "--max_grad_norm", "1", "--recompute")
        self.assertEqual((result["parameters"], result["layers"]), (1311872, 4))
        self.assertAlmostEqual(result["losses"][0], math.log(2048), delta=0.3)
        self.assertLess(result["losses"][-1], result["losses"][0])
        self.assertAlmostEqual(result["tokens_per_second"], 2 * 64 * 1000 / result["step_time_ms"], delta=0.1)
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "lengths.jsonl"
            file.write_text("[64, 8]\n[16, 40]\n")
            padded = self.work("train_pytorch.py", "--model", model, "--device", "cpu", "--lengths", file, "--warm_up", "1",
                               "--steps", "1")
        self.assertAlmostEqual(padded["losses"][0], math.log(2048), delta=0.3)
        self.assertAlmostEqual(padded["tokens_per_second"], 56 * 1000 / padded["step_time_ms"], delta=0.1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
