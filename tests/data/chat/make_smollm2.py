#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Makes smollm2.json: the rows of chatml.json by SmolLM2's template.

  make_smollm2.py chat_template.jinja       of a SmolLM2-Instruct checkpoint; needs transformers
"""
import json
import pathlib
import sys

import transformers

HERE = pathlib.Path(__file__).resolve().parent
HEADER = "<|im_start|>assistant\n"
KEPT = {"system", "user", "assistant"}


def render(tokenizer, template, messages):
    return tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False) if messages else ""


def uniform(messages):
    """Without null members, and a content of one text part as that text."""
    rows = [{key: value for key, value in message.items() if value is not None} for message in messages]
    for row in rows:
        content = row.get("content")
        if isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text":
            row["content"] = content[0]["text"]
    return rows


def expected(tokenizer, template, messages):
    """Text, ids, and the tokens of each turn. A token belongs to where its first byte lies."""
    text = render(tokenizer, template, messages)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    starts = [begin for begin, _ in encoded["offset_mapping"]] + [len(text)]
    turns = []
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            whole = render(tokenizer, template, messages[:i + 1])
            end = len(whole) - 1  # the line end is not learnt
            begin = end - len("<|im_end|>") - len(message["content"])
            assert whole[:begin].endswith(HEADER) and text.startswith(whole)
            first, last = (next(t for t, start in enumerate(starts) if start >= at) for at in (begin, end))
            turns.append([i, first, last])
    masks = [turn[1:] for turn in turns]
    return {"text": text, "ids": encoded["input_ids"], "turns": turns, "mask_all": masks, "mask_last": masks[-1:]}


def case(tokenizer, template, name, text):
    row = json.loads(text)
    made = {"name": name, "row": text}
    messages = row.get("messages", [])
    try:
        if not messages:
            raise TypeError
        made |= expected(tokenizer, template, messages)
    except (TypeError, KeyError, AttributeError, transformers.utils.chat_template_utils.jinja2.exceptions.TemplateError):
        made["error"] = {}
        try:
            made |= {"alternative": expected(tokenizer, template, uniform(messages))} if messages else {}
        except Exception:  # neither the row nor its uniform form can be rendered
            pass
    lost = [key for message in messages for key in message if key in ("tool_calls", "thinking", "reasoning_content")]
    if row.get("tools") or any(message["role"] not in KEPT for message in messages) or any(lost):
        made["may_refuse"] = "the template does not show tools, calls and thoughts, and its model knows no other roles"
    return made


def main(template):
    template = pathlib.Path(template).read_text()
    tokenizer = transformers.AutoTokenizer.from_pretrained(HERE.parent / "tokenizers" / "smollm2")
    rows = json.loads((HERE / "chatml.json").read_text())["cases"]
    cases = [case(tokenizer, template, one["name"], one["row"]) for one in rows]
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    (HERE / "smollm2.json").write_text(
        '{"template": "smollm2", "tokenizer": "smollm2", "cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
