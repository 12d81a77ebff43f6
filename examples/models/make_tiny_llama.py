#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a small Llama checkpoint in the Hugging Face layout: a byte-level BPE tokenizer learnt from the
bundled instructions, and random weights. Needs the standard library only; the same bytes every time.

    make_tiny_llama.py OUTPUT_DIR [--held_out FILE.jsonl]

The last tenth of the rows is never looked at; --held_out writes it to a file, one JSON object a line.
make_tiny_llama.sh goes on from here and pre-trains the weights.
"""

import argparse
import collections
import heapq
import json
import pathlib
import random
import re
import struct
import sys
import unicodedata

DATASET = pathlib.Path(__file__).resolve().parent.parent / "data" / "alpaca_en_demo.json"
BOS, EOS, PAD = SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>"]
VOCABULARY = 2048
FIRST_SPECIAL = VOCABULARY - len(SPECIAL)
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS = 128, 384, 4, 4, 2


def character_class(initial):
    """The code points whose general category starts with this letter, as ranges of a regular expression."""
    ranges = []
    for point in range(sys.maxunicode + 1):
        if unicodedata.category(chr(point))[0] == initial:
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def split_words(texts):
    """How often each piece of the split occurs; `re` does not know \\p{L} and \\p{N}, so they are spelt out."""
    pattern = SPLIT
    for name in "LN":
        ranges = character_class(name)
        pattern = re.sub(r"(\[[^]]*)\\p\{%s\}" % name, lambda m: m[1] + ranges, pattern)  # within brackets
        pattern = pattern.replace(r"\p{%s}" % name, f"[{ranges}]")
    split = re.compile(pattern)
    return collections.Counter(word for text in texts for word in split.findall(text))


def byte_alphabet():
    """The printable character that stands for each byte in tokenizer.json (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        table.setdefault(byte, chr(0x100 + len(table) - len(printable)))
    return table


def learn_merges(words, count):
    """Byte-pair encoding: `count` times, the most frequent pair of neighbours becomes one token.
    Equal counts are settled by the spelling. Words are counted once, pairs are kept up to date."""
    alphabet = byte_alphabet()
    spelt = [[alphabet[byte] for byte in word.encode()] for word in words]
    weights = list(words.values())
    counts, where = collections.Counter(), collections.defaultdict(set)
    for index, word in enumerate(spelt):
        for pair in zip(word, word[1:]):
            counts[pair] += weights[index]
            where[pair].add(index)
    queue = [(-n, pair) for pair, n in counts.items()]
    heapq.heapify(queue)
    merges = []
    while len(merges) < count:
        n, best = heapq.heappop(queue)
        if -n != counts[best]:
            continue  # out of date: the pair was queued again when its count changed
        merges.append(best)
        changed = set()
        for index in where.pop(best):
            before = spelt[index]
            after, i = [], 0
            while i < len(before):
                step = 2 if tuple(before[i:i + 2]) == best else 1
                after.append("".join(before[i:i + step]))
                i += step
            for word, sign in ((before, -1), (after, 1)):
                for pair in zip(word, word[1:]):
                    counts[pair] += sign * weights[index]
                    changed.add(pair)
                    if sign > 0:
                        where[pair].add(index)
            spelt[index] = after
        for pair in changed:
            if counts[pair] > 0:
                heapq.heappush(queue, (-counts[pair], pair))
    return merges


def tokenizer_json(merges):
    tokens = sorted(byte_alphabet().values()) + ["".join(pair) for pair in merges]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    bos = {"SpecialToken": {"id": BOS, "type_id": 0}}
    sequence = [{"Sequence": {"id": name, "type_id": type_id}} for type_id, name in enumerate("AB")]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": FIRST_SPECIAL + i, "content": token, **flags, "special": True}
                         for i, token in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}, byte_level]},
        "post_processor": {"type": "Sequence", "processors": [
            {**byte_level, "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            {"type": "TemplateProcessing",
             "single": [bos, sequence[0]],
             "pair": [bos, sequence[0], {"SpecialToken": {"id": BOS, "type_id": 1}}, sequence[1]],
             "special_tokens": {BOS: {"id": BOS, "ids": [FIRST_SPECIAL], "tokens": [BOS]}}}]},
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [" ".join(pair) for pair in merges]},
    }


def tokenizer_config():
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {
        "added_tokens_decoder": {str(FIRST_SPECIAL + i): {"content": token, **flags}
                                 for i, token in enumerate(SPECIAL)},
        "bos_token": BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": EOS,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 2048,
        "pad_token": PAD,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def special_tokens_map():
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    names = ["bos_token", "eos_token", "pad_token"]
    return {name: {"content": token, **flags} for name, token in zip(names, SPECIAL)}


def model_config():
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": FIRST_SPECIAL,
        "eos_token_id": FIRST_SPECIAL + 1,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": 2048,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "pad_token_id": FIRST_SPECIAL + 2,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 256, "rope_type": "llama3"},
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.57.6",
        "use_cache": True,
        "vocab_size": VOCABULARY,
    }


def generation_config():
    return {
        "_from_model_config": True,
        "bos_token_id": FIRST_SPECIAL,
        "eos_token_id": FIRST_SPECIAL + 1,
        "pad_token_id": FIRST_SPECIAL + 2,
        "transformers_version": "4.57.6",
    }


def tensor_shapes():
    kv = HIDDEN // HEADS * KV_HEADS
    block = {
        "input_layernorm": [HIDDEN],
        "self_attn.q_proj": [HIDDEN, HIDDEN],
        "self_attn.k_proj": [kv, HIDDEN],
        "self_attn.v_proj": [kv, HIDDEN],
        "self_attn.o_proj": [HIDDEN, HIDDEN],
        "post_attention_layernorm": [HIDDEN],
        "mlp.gate_proj": [INTERMEDIATE, HIDDEN],
        "mlp.up_proj": [INTERMEDIATE, HIDDEN],
        "mlp.down_proj": [HIDDEN, INTERMEDIATE],
    }
    shapes = {"model.embed_tokens.weight": [VOCABULARY, HIDDEN]}
    for layer in range(LAYERS):
        shapes.update({f"model.layers.{layer}.{name}.weight": shape for name, shape in block.items()})
    return shapes | {"model.norm.weight": [HIDDEN], "lm_head.weight": [VOCABULARY, HIDDEN]}


def bfloat16(value):
    """The nearest bfloat16, as two bytes."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def write_safetensors(path):
    """Norms are one, everything else is normal with the deviation that transformers starts from."""
    generator = random.Random(0)
    header, data = {"__metadata__": {"format": "pt"}}, bytearray()
    for name, shape in tensor_shapes().items():
        begin = len(data)
        if len(shape) == 1:
            data += bfloat16(1.0) * shape[0]
        else:
            data += b"".join(bfloat16(generator.gauss(0.0, 0.02)) for _ in range(shape[0] * shape[1]))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, metavar="OUTPUT_DIR")
    parser.add_argument("--held_out", type=pathlib.Path, metavar="FILE.jsonl")
    arguments = parser.parse_args()

    rows = json.loads(DATASET.read_text(encoding="utf-8"))
    training = rows[:len(rows) * 9 // 10]  # what --dataset_percentage 90 takes
    if arguments.held_out:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows[len(training):]]
        arguments.held_out.write_text("".join(lines), encoding="utf-8")

    words = split_words(text for row in training for text in row.values())
    merges = learn_merges(words, FIRST_SPECIAL - 256)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, content in {"tokenizer": tokenizer_json(merges), "tokenizer_config": tokenizer_config(),
                          "special_tokens_map": special_tokens_map(), "config": model_config(),
                          "generation_config": generation_config()}.items():
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (arguments.output / f"{name}.json").write_text(text, encoding="utf-8")
    write_safetensors(arguments.output / "model.safetensors")


if __name__ == "__main__":
    main()
