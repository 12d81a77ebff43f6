#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/docs/snippets.py refuses."""

import pathlib
import tempfile
import unittest

import snippets


class Snippets(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.programs = pathlib.Path(self.scratch.name)
        program = self.programs / "finetune_llama"
        program.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *--wrong*) exit 2 ;; esac\n')
        program.chmod(0o755)

    def run_page(self, text):
        return snippets.run_page("page.md", snippets.blocks("page.md", text), self.programs)

    def refuses(self, expected, text):
        with self.assertRaises(snippets.Failure) as refusal:
            self.run_page(text)
        self.assertIn(expected, str(refusal.exception))

    @staticmethod
    def block(comment, text, language="sh"):
        return (f"<!-- test: {comment} -->\n" if comment else "") + f"```{language}\n{text}\n```\n"

    def test_passes(self):
        text = self.block("file data.json", '{"a": 1}', "json") + self.block("run", "cat data.json") + \
            self.block("output", '{"...": 1}', "")
        self.assertEqual(self.run_page(text), [])

    def test_a_command_without_a_comment(self):
        self.refuses("page.md:2: a block of sh without a comment", self.block("", "true"))
        self.refuses("a block of cmake without a comment", self.block("", "project(x)", "cmake"))

    def test_a_comment_without_a_block(self):
        self.refuses("expected a fenced block", "<!-- test: run -->\ntext\n")
        self.refuses("is not closed", "```sh\ntrue\n")

    def test_a_command_that_fails(self):
        self.refuses("ended with status 3, expected 0", self.block("run", "exit 3"))
        self.refuses("ended with status 1, expected 0", self.block("run", "false\ntrue"))
        self.refuses("ended with status 0, expected 2", self.block("run exit 2", "true"))
        self.refuses("ended with status 2, expected 0", self.block("plan", "finetune_llama --wrong"))

    def test_a_plan(self):
        machine = self.block("plan on gh200", "finetune_llama --model x") + self.block("output", "--model x ...gh200.json --dry_run", "")
        self.assertEqual(self.run_page(machine), [])
        own = self.block("plan", "finetune_llama --hardware mine") + self.block("output", "--hardware mine --dry_run", "")
        self.assertEqual(self.run_page(own), [])
        self.assertEqual(self.run_page(self.block("plan except rm", "rm everything\nfinetune_llama")), [])
        self.refuses("there is no bench/hardware/nothing.json", self.block("plan on nothing", "finetune_llama"))

    def test_output(self):
        printed = self.block("run", "echo one; echo two; echo three >&2")
        self.assertEqual(self.run_page(printed + self.block("output", "one\n...\nthree\ntwo", "")), [])
        self.refuses("page.md:7: not printed, or not in this order: on", printed + self.block("output", "on", ""))
        self.refuses("not in this order: one", printed + self.block("output", "two\none", ""))
        self.refuses("no command has run before it", self.block("output", "one", ""))

    def test_json(self):
        self.run_page(self.block("", '{"a": 1}\n{"a": 2}', "json"))
        self.refuses("neither JSON nor JSON lines", self.block("", '{"a": }', "json"))
        self.refuses("neither JSON nor JSON lines", self.block("file x.json", '{"a": }', "json"))

    def test_reasons(self):
        self.assertEqual(len(self.run_page(self.block("skip it needs a GPU", "false"))), 1)
        self.refuses("skip without a reason", self.block("skip", "false"))
        self.refuses("names tests/nothing.sh, which does not exist", self.block("skip tests/nothing.sh runs it", "false"))

    def test_words(self):
        for wrong in ("ran", "run exit", "plan gh200", "output text", "file"):
            with self.assertRaises(snippets.Failure):
                self.run_page(self.block("run", "true") + self.block(wrong, "true"))

    def test_a_block_without_its_place(self):
        found = snippets.blocks("docs/nothing.md", self.block("", "int i = 0;", "cpp"))
        with self.assertRaises(snippets.Failure):
            list(snippets.translation_units("docs/nothing.md", found))

    def test_code_that_does_not_compile(self):
        found = snippets.blocks("README.md", self.block("", "#include <cstdio>\nint i = missing;", "cpp"))
        for unit in snippets.translation_units("README.md", found):
            with self.assertRaises(snippets.Failure) as refusal:
                snippets.compile_unit("g++", *unit)
            self.assertIn("README.md:3:", str(refusal.exception))


if __name__ == "__main__":
    unittest.main()
