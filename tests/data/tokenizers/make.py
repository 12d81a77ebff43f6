#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the tokenizers that are trained here, and compares a program with the package of Hugging Face.

  make.py                                   writes the families below, and random_texts.json, variants.json, classes.json
  make.py --compare PROGRAM [--count N] [DIR...]   the ids of `tokenize` on N random texts for each directory

Wants the package tokenizers, 0.23.3. Random texts are a function of their number, which tests/text/random_texts.hpp
repeats. Of their ids the files have a digest.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import charsmap
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
ALPACA = HERE.parents[2] / "examples/data/alpaca_en_demo.json"
MARK = "\u2581"
PIECES = ["a", "b", "s", "S", "the", " the", "The", "ing", "ION", "'s", "'S", "'ll", "\u2019s", "I'm", " ", " ", "  ", "    ", "\t", "\n",
          "\n\n", "\r\n", " \n", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\u200d", "\ufeff", "\u0000", "\u0007", "\u001b",
          "\u007f", "0", "1", "42", "2024", "3.14", "\u0660", "\u0969", "\u00bd", "\u00b2", "\u2167", "\u2460", ".", ",", "!", "?!", "...",
          "-", "_", "__", "$", "+", "=", "<", ">", "|", "(", ")", "[", "]", "{", "}", "/", "//", "#", "@", "\u2026", "\u3002", "\uff0c",
          "\u00e9", "e\u0301", "\u00c5", "A\u030a", "\u212b", "\u0344", "\u0301\u0323", "\u0130", "\u0131", "\u00df", "\u1e9e", "\ufb01",
          "\u017f", "\u212a", "\u03a3\u03c2", "\u01c5", "\u02b0", "\u4f60\u597d", "\u4e16\u754c", "\u3042", "\u30ab\u3099", "\uff76\uff9e",
          "\ud55c\uae00", "\u1112\u1161\u11ab", "\u0928\u093f", "\u0e01\u0e33", "\u05e9\u05c1", "\u0627\u0644\ufdfa", "\U0001f600",
          "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001d400", "\U0002070e", "\U0010ffff", "\ue000",
          MARK, MARK + MARK, "\u0120", "<s>", "</s>", "<unk>", "<0x41>", "<|endoftext|>", "[INST]", "def f(x):\n    return x\n"]
MASK = (1 << 64) - 1
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn L M N P S Z C LC"
NAMES = ("Letter Cased_Letter Mark Nonspacing_Mark Number Decimal_Number Punctuation Punct Symbol Currency_Symbol Separator Other "
         "Format Unassigned Han Hani Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Hebrew Thai Devanagari Bengali Tamil Telugu "
         "Georgian Armenian Ethiopic Khmer Lao Myanmar Tibetan Mongolian Bopomofo Common Inherited Unknown Sylo Tulu_Tigalari "
         "Alphabetic Uppercase Lowercase Emoji Emoji_Presentation Extended_Pictographic Ideographic White_Space Any Alnum XDigit")
POSIX = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit word ascii"


def random_text(number):
    """splitmix64 from the number."""
    state = number

    def draw(end):
        nonlocal state
        state = (state + 0x9e3779b97f4a7c15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
        z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
        return ((z ^ (z >> 31)) >> 11) % end

    text = ""
    for _ in range(1 + draw(24)):
        if draw(4) != 0:
            text += PIECES[draw(len(PIECES))]
            continue
        c = draw(0x3000) if draw(2) else draw(0x110000)
        text += "x" if 0xd800 <= c <= 0xdfff else chr(c)
    return text


def digest(ids):
    """FNV-1a of the decimal ids, each with a space behind it, or of a text."""
    value = 0x811c9dc5
    for byte in (ids if isinstance(ids, str) else "".join(f"{i} " for i in ids)).encode():
        value = ((value ^ byte) * 0x01000193) & 0xffffffff
    return value


def corpus():
    rows = json.loads(ALPACA.read_text())
    for row in rows[:400]:
        yield "\n".join((row["instruction"], row["input"], row["output"]))
    yield "def f(x):\n    if x:\n        return x  # comment\n" * 40
    yield "caf\u00e9 na\u00efve \u4f60\u597d \u4e16\u754c \ud55c\uae00 \U0001f600 " * 20


def trained(pre_tokenizer, size, special, alphabet, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, limit_alphabet=256,
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return json.loads(tokenizer.to_str())


def added(document, names, id_of=None, **flags):
    vocabulary = document["model"]["vocab"]
    document["added_tokens"] = [{"id": id_of(name) if id_of else vocabulary.get(name, len(vocabulary) + i), "content": name,
                                 "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}
                                for i, name in enumerate(names)]


def template(name, number):
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [number], "tokens": [name]}}}


def sequence(key, *steps):
    return {"type": "Sequence", key: list(steps)}


def sentence_piece(size):
    """Of characters, with a token for each byte, as Llama 2, Mistral and TinyLlama have it."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    document = trained(pre_tokenizers.Metaspace(), size, special, [], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    added(document, special[:3])
    vocabulary, merges = document["model"]["vocab"], document["model"]["merges"]
    for spaces in (2, 4, 8):
        vocabulary[MARK * spaces] = len(vocabulary)
        merges.append([MARK * (spaces // 2)] * 2)
    document["post_processor"] = template("<s>", 1)
    return document


def llama2():
    document = sentence_piece(760)
    document["normalizer"] = sequence("normalizers", {"type": "Prepend", "prepend": MARK},
                                      {"type": "Replace", "pattern": {"String": " "}, "content": MARK})
    document["pre_tokenizer"] = None
    document["decoder"] = sequence("decoders", {"type": "Replace", "pattern": {"String": MARK}, "content": " "},
                                   {"type": "ByteFallback"}, {"type": "Fuse"},
                                   {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return document, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def mistral():
    document = sentence_piece(700)
    vocabulary = document["model"]["vocab"]
    document["added_tokens"].append({**document["added_tokens"][0], "id": len(vocabulary), "content": "[INST]"})
    document["normalizer"] = None
    document["pre_tokenizer"] = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    document["decoder"] = sequence("decoders", {"type": "Replace", "pattern": {"String": MARK}, "content": " "},
                                   {"type": "ByteFallback"}, {"type": "Fuse"},
                                   {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return document, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_prefix_space": True}


def byte_level(size, special, **options):
    return trained(pre_tokenizers.ByteLevel(add_prefix_space=False), size, special, pre_tokenizers.ByteLevel.alphabet(), **options)


def smollm2():
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    document = byte_level(700, special)
    added(document, special)
    document["pre_tokenizer"] = sequence("pretokenizers", {"type": "Digits", "individual_digits": True},
                                         {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True})
    document["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return document, {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "add_prefix_space": False}


def deepseek_llm():
    document = byte_level(650, [])
    added(document, ["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"])
    added_tokens = document["added_tokens"]
    document["normalizer"] = sequence("normalizers")

    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    document["pre_tokenizer"] = sequence(
        "pretokenizers", split("[\r\n]"),
        split("\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u1e00-\u1f15"
              "\u2c00-\u2c7b\ua640-\ua66d\ufb00-\ufb06\uff21-\uff3a\U00010400-\U0001044f]+"),
        split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split("\\s+$"),
        split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})
    document["post_processor"] = template(added_tokens[0]["content"], added_tokens[0]["id"])
    document["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return document, {"bos_token": added_tokens[0]["content"], "eos_token": added_tokens[1]["content"]}


def unigram():
    """As models of SentencePiece have it: tokens with scores, and bytes."""
    special = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=700, special_tokens=special, unk_token="<unk>",
                                                                    show_progress=False))
    document = json.loads(tokenizer.to_str())
    document["model"]["byte_fallback"] = True
    document["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    added(document, special, lambda name: special.index(name))
    document["normalizer"] = sequence("normalizers", {"type": "Precompiled", "precompiled_charsmap": charsmap.encoded(RULES)},
                                      {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    document["post_processor"] = template("</s>", 2)
    document["decoder"] = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    return document, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_prefix_space": True}


FAMILIES = {"llama2": llama2, "mistral": mistral, "smollm2": smollm2, "deepseek_llm": deepseek_llm, "unigram": unigram}


def patched(value, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    value = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            value.pop(key, None)
        else:
            value[key] = patched(value.get(key), change)
    return value


# Of a normalizer Precompiled. A replacement may be empty, and the begin of a cluster may have one of its own.
RULES = {"\ufb01": "fi", "\u00e9": "e", "e\u0301": "\u00e9", "A": "a", "A\u030a": "\u00e5", "\u3000": " ", "\u00a0": " ", "\t": " ",
         "\r": "", "\r\n": "\n", "\u00bd": " 1/2", "\u00b2": "2", "\u200b": "", "\u200d": " ", "\u0130": "i", "\ud55c": "han", "S": "s",
         "\u212b": "\u00e5", "\U0001d400": "A", "\U0001f468": "\u4eba", "\u0301": "'", "\u0301\u0323": "''", "\u0e33": "\u0e4d\u0e32",
         "\u4f60\u597d": "hello", "\uff76": "\u30ab", "\u05e9\u05c1": "\ufb2a", "\u0627": "a", "\u0928": "na", "\u2460": "(1)"}
# As the tokenizer of Kimi K2 cuts.
KIMI = ("[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
        "|\\s+(?!\\S)|\\s+")


def model_of(family):
    return json.loads((HERE / family / "tokenizer.json").read_text())["model"]


def merges_of(family):
    return model_of(family)["merges"]


def affixed(family, prefix, suffix, patch):
    """A patch with a prefix of letters that go on a word, and a suffix of those that end one, for a few tokens."""
    model = model_of(family)
    letters = [token for token in model["vocab"] if len(token) == 1]
    pairs = [pair for pair in model["merges"] if len(pair[0]) == len(pair[1]) == 1][:60]
    tokens = [before + letter + behind for letter in letters for before in ("", prefix) for behind in ("", suffix)]
    merges = []
    for left, right in pairs:
        for before in ("", prefix):
            for behind in (suffix, ""):
                merges.append([before + left, prefix + right + behind])
                tokens.append(before + left + right + behind)
    vocabulary = {}
    for token in tokens:
        if token not in model["vocab"] and token not in vocabulary:
            vocabulary[token] = 1000 + len(vocabulary)
    merges = [list(pair) for pair in dict.fromkeys(map(tuple, merges))]
    own = {"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix, "vocab": vocabulary, "merges": merges}
    return {**patch, "model": {**patch.get("model", {}), **own}}


def variants():
    """(family, name, patch of its tokenizer.json)"""
    behaviors = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")

    def pre(*steps):
        return {"pre_tokenizer": sequence("pretokenizers", *steps)}

    def normal(*steps, **more):
        return {"normalizer": sequence("normalizers", *steps), **more}

    def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
        return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}

    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    plain = normal()
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            step = {**metaspace, "prepend_scheme": scheme, "split": cut}
            yield "llama2", f"metaspace {scheme} {cut}", {**plain, **pre(step)}
            yield "llama2", f"strip, metaspace {scheme} {cut}", {**normal({"type": "Strip", "strip_left": True, "strip_right": False}),
                                                                **pre(step)}
            yield "llama2", f"digits, metaspace {scheme} {cut}", {**plain, **pre({"type": "Digits", "individual_digits": False}, step)}
            yield "llama2", f"prepend, split, metaspace {scheme} {cut}", {
                **normal({"type": "Prepend", "prepend": "ab"}), **pre(split("b", "Isolated", False, "String"), step)}
    yield "llama2", "metaspace by default", {**plain, **pre({"type": "Metaspace", "replacement": "_", "add_prefix_space": True})}
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase"):
        yield "llama2", name, normal({"type": name})
        yield "smollm2", name, normal({"type": name})
    for left in (True, False):
        for right in (True, False):
            yield "smollm2", f"strip {left} {right}", normal({"type": "Strip", "strip_left": left, "strip_right": right})
    yield "smollm2", "replace", normal({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "NFKC"},
                                       {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": "."}, "content": ""})
    precompiled = {"type": "Precompiled", "precompiled_charsmap": charsmap.encoded(RULES)}
    for family in ("llama2", "smollm2"):
        for step in ({"type": "StripAccents"}, {"type": "Nmt"}, precompiled):
            yield family, step["type"], normal(step)
    # Counts clusters of less than six bytes.
    yield "llama2", "clusters", normal({**precompiled, "precompiled_charsmap": charsmap.encoded({bytes([b]): "!" for b in range(1, 256)})})
    yield "llama2", "precompiled and others", normal({"type": "NFD"}, precompiled, {"type": "StripAccents"}, {
        "type": "Replace", "pattern": {"Regex": " {2,}"}, "content": MARK}, {"type": "Prepend", "prepend": MARK})
    for behavior in behaviors:
        yield "llama2", f"punctuation {behavior}", pre({"type": "Punctuation", "behavior": behavior})
        for invert in (True, False):
            yield "llama2", f"space {behavior} {invert}", pre(split(MARK, behavior, invert, "String"))
            yield "smollm2", f"words {behavior} {invert}", {**pre(split("\\p{L}+", behavior, invert), {
                "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})}
            yield "smollm2", f"perhaps empty {behavior} {invert}", {**pre(split("\\p{L}*", behavior, invert), {
                "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})}
    for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation"):
        yield "llama2", name, {**plain, **pre({"type": name})}
    yield "llama2", "delimiter", {**plain, **pre({"type": "CharDelimiterSplit", "delimiter": "e"})}
    for individual in (True, False):
        yield "llama2", f"digits {individual}", pre({"type": "Digits", "individual_digits": individual})
        for regex in (True, False):
            yield "smollm2", f"byte level {individual} {regex}", pre(
                split("[^a-z]+", "Contiguous"), {"type": "ByteLevel", "add_prefix_space": individual, "trim_offsets": True, "use_regex": regex})
    for pattern in ("\\s+$", "^\\s*\\w+", "(?<=a)\\w|(?<![a-z])\\d", "[\\w&&[^aeiou]]+?(?=[aeiou])", "(?>\\s+)x|\\s+", "\\d{2,3}|\\d{1,2}?",
                    "a*+b?|[[a-f][x-z]]++", "\\bthe\\b|\\B.\\B", "\\A.|.\\z", "(?:ab|a|the)*?s", "(?i)the|ION|[k-s]", ".+",
                    "(?i:'s|'t|'re|'ve|'m|'ll|'d|\u2019s)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]"
                    "|\\s+(?!\\S)|\\s+",
                    "[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))*((?=[\\p{L}])([^A-Z]))+(?:'[sS])?|\\p{N}|\\s+",
                    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?"
                    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+"
                    "|\\s+(?!\\S)|\\s+",
                    "[\\u4e00-\\u9fff]+|\\x{1F600}", "\\p{P}|\\p{^L}\\P{Mn}|[^\\S\\n]+", "\\p{Lu}\\p{Ll}*|\\p{S}+|\\p{Zs}|\\p{Cc}", KIMI,
                    "(?<word>\\p{Latin}+|\\p{Greek}+)|(?<cjk>[\\p{Hiragana}\\p{Katakana}\\p{Hangul}]+)|\\p{^Common}|(?'n'[[:punct:]]+)",
                    "[[:alpha:][:digit:]]+|[^[:^space:]]|\\p{Emoji_Presentation}"):
        yield "smollm2", pattern, pre(split(pattern), {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})
    digits = ({"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]"))
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    yield "smollm2", "steps behind bytes, as Falcon has them", pre({"type": "Punctuation", "behavior": "Contiguous"}, level, *digits)
    yield "smollm2", "bytes of bytes", pre({**level, "add_prefix_space": True}, {**level, "use_regex": False})
    yield "smollm2", "bytes in the normalizer", {**normal({"type": "NFD"}, {"type": "ByteLevel"}), **pre(*digits, split("\u0120", "MergedWithNext"))}
    for family, patch in (("smollm2", {}), ("llama2", normal(pre_tokenizer={"type": "Whitespace"})),
                          ("llama2", {"model": {"byte_fallback": False, "unk_token": None}}), ("smollm2", {"model": {"ignore_merges": True}})):
        for prefix, suffix in (("", "</w>"), ("##", ""), ("\u2581\u00e9", "\u0120$")):
            yield family, f"affixes {prefix} {suffix} {sorted(patch)}", affixed(family, prefix, suffix, patch)
    yield "unigram", "unknown", {"model": {"byte_fallback": False}}
    yield "unigram", "some bytes", {"model": {"vocab": model_of("unigram")["vocab"][:-64]}}
    yield "unigram", "tokens again", {"model": {"vocab": model_of("unigram")["vocab"][:-256] + [
        ["e", -1.5], ["the", -30], ["e", -4], ["\u0301\U0001f600", -2], [" ", -3.25]]}, "pre_tokenizer": None}
    yield "unigram", "letters", {"normalizer": None, "pre_tokenizer": {**level, "use_regex": False}}
    yield "smollm2", "merges again", {"model": {"merges": merges_of("smollm2")[:100] + merges_of("smollm2")[::-1]}}
    for fuse in (True, False):
        yield "llama2", f"unknown, fused {fuse}", {"model": {"byte_fallback": False, "fuse_unk": fuse}}
        yield "llama2", f"some bytes, fused {fuse}", {"model": {"fuse_unk": fuse, "vocab": {"<0xE4>": None, "<0xF0>": None}}}
    yield "llama2", "left out", {"model": {"byte_fallback": False, "unk_token": None}}
    yield "llama2", "merges ignored", {"model": {"ignore_merges": True}, **pre({"type": "Whitespace"})}
    yield "smollm2", "bytes left out", {"model": {"vocab": {letter: None for letter in "\u00cc\u0122zQ\u0125"}, "merges": []}}
    yield "smollm2", "bytes unknown", {"model": {"vocab": {letter: None for letter in "\u00cc\u0122zQ\u0125"}, "merges": [],
                                                 "unk_token": "<|endoftext|>", "fuse_unk": True}}
    yield "smollm2", "bytes fall back", {"model": {"vocab": {"\u00cc": None, "\u0122": None, "z": None, "<0xC4>": 1001, "<0xA2>": 1002,
                                                             "<0x7A>": 1003, "<0xC3>": 1004}, "merges": [], "byte_fallback": True}}
    yield "smollm2", "merges ignored", {"model": {"ignore_merges": True}}
    token = {"id": 763, "content": "Caf\u00c9", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True, "special": False}
    yield "llama2", "normalized token", normal({"type": "Lowercase"}, {"type": "NFD"}, added_tokens=[token, {**token, "id": 764,
          "content": "the", "single_word": True}])
    yield "llama2", "normalized token with a prefix", {"added_tokens": [{**token, "content": "the"}]}


def classes():
    """Of each class a digest of all characters in it."""
    names = [kind for kind in CATEGORIES.split() if kind != "Cs"] + NAMES.split()
    patterns = [f"\\p{{{name}}}" for name in names] + [f"[:{name}:]" for name in POSIX.split()] + ["\\s", "\\w", "\\d"]
    text = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xd800 <= c < 0xe000)
    found = {}
    for pattern in patterns:
        pieces = pre_tokenizers.Split(Regex(f"[^{pattern}]+"), "removed").pre_tokenize_str(text)
        found[f"[{pattern}]+"] = digest("".join(piece for piece, _ in pieces))
    return found


def encoded(tokenizer, text):
    """None where the package itself fails, as it does for a few texts that a normalizer makes shorter."""
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:  # a panic is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return None


def texts():
    return [case["text"] for case in json.loads((HERE / "llama3/tokenizer_cases.json").read_text())["cases"]]


def expected(tokenizer, config, count):
    def number(name):
        return tokenizer.token_to_id(config[name]) if name in config else None

    cases = []
    for text in texts()[:40]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": tokenizer.encode(text).ids, "ids_no_special": ids,
                      "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    randoms = [tokenizer.encode(random_text(i), add_special_tokens=False).ids for i in range(200)]
    return {"bos_id": number("bos_token"), "eos_id": number("eos_token"), "pad_id": number("pad_token"),
            "tokenizer_size": max(tokenizer.get_vocab().values()) + 1, "cases": cases,
            "texts": [digest(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts()],
            "random": [digest(tokenizer.encode(random_text(i), add_special_tokens=False).ids) for i in range(count)],
            "decoded": [digest(tokenizer.decode(ids, skip_special_tokens=False)) for ids in randoms]}


def write(path, value, **options):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, **options) + "\n")


def make():
    write(HERE / "random_texts.json", {"pieces": PIECES}, indent=0)
    write(HERE / "classes.json", classes(), indent=0)
    documents = {}
    for name, family in FAMILIES.items():
        document, config = family()
        documents[name] = document
        tokenizer = Tokenizer.from_str(json.dumps(document))
        write(HERE / name / "tokenizer.json", document)
        write(HERE / name / "tokenizer_config.json", config)
        write(HERE / name / "expected.json", expected(tokenizer, config, 2000))
    found = []
    for family, name, patch in variants():
        tokenizer = Tokenizer.from_str(json.dumps(patched(documents[family], patch)))
        found.append({"family": family, "name": name, "patch": patch,
                      "random": [digest(ids) if (ids := encoded(tokenizer, random_text(i))) is not None else None
                                 for i in range(300)]})
    (HERE / "variants.json").write_text("[\n" + ",\n".join(json.dumps(one) for one in found) + "\n]\n")


def compare(program, directories, count):
    """The number of texts whose ids differ."""
    differing = 0
    lines = "".join(json.dumps(random_text(i)) + "\n" for i in range(count))
    for directory in directories:
        tokenizer = Tokenizer.from_file(str(pathlib.Path(directory) / "tokenizer.json"))
        done = subprocess.run([program, "--model", directory, "--no_special"], input=lines, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{directory}: {done.stderr.strip()}")
            differing += 1
            continue
        wrong = failed = 0
        for number, line in enumerate(done.stdout.splitlines()):
            text = random_text(number)
            ids = encoded(tokenizer, text)
            if ids is None:
                failed += 1
            elif ids != json.loads(line):
                wrong += 1
                if wrong <= 3:
                    print(f"{directory}: text {number} {text!r}: {json.loads(line)}, expected {ids}")
        print(f"{directory}: {wrong} of {number + 1} texts differ" + (f", the package fails on {failed}" if failed else ""))
        differing += wrong
    return differing


def compare_variants(program, count):
    differing = 0
    for family, name, patch in variants():
        with tempfile.TemporaryDirectory() as directory:
            document = json.loads((HERE / family / "tokenizer.json").read_text())
            write(pathlib.Path(directory) / "tokenizer.json", patched(document, patch))
            print(family, name, end=" ")
            differing += compare(program, [directory], count)
    return differing


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--compare", metavar="PROGRAM")
    arguments.add_argument("--variants", action="store_true", help="compares those of variants.json, too")
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("directories", nargs="*", metavar="DIR")
    options = arguments.parse_args()
    if options.compare is None:
        make()
        return 0
    differing = compare(options.compare, options.directories, options.count)
    if options.variants:
        differing += compare_variants(options.compare, options.count)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
