#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""The checker finds planted violations, one by one, and none in a clean tree."""

import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check.py")
TABLE = runpy.run_path(str(CHECK))["ALLOWED"]
SPDX = "// SPDX-FileCopyrightText: 2026 A\n// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"


class Check(unittest.TestCase):
    def run_on(self, tree):
        with tempfile.TemporaryDirectory() as root:
            for name, text in tree.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)

    def accepts(self, name, text):
        result = self.run_on({name: text})
        self.assertEqual(result.returncode, 0, result.stdout)

    def rejects(self, name, text, message):
        result = self.run_on({name: text})
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)
        self.assertTrue(result.stdout.startswith(name + ":"), result.stdout)
        self.assertIn(message, result.stdout)

    def test_downward(self):
        self.accepts("include/superoffload/nn/a.hpp", SPDX + "#include <superoffload/autograd/b.hpp>\n#include <vector>\n")
        self.accepts("include/superoffload/nn/a.hpp", SPDX + "#include <superoffload/nn/b.hpp>\n")
        self.accepts("include/superoffload/superoffload.hpp", SPDX + "#include <superoffload/io/b.hpp>\n")

    def test_upward(self):
        self.rejects("include/superoffload/core/a.hpp", SPDX + "#include <superoffload/io/b.hpp>\n", "core includes")
        self.rejects("include/superoffload/nn/a.hpp", SPDX + "  # include <superoffload/zero/b.hpp>\n", "nn includes")

    def test_beside(self):
        include = SPDX + "#include <superoffload/offload/{}/b.hpp>\n"
        self.accepts("include/superoffload/offload/state/a.hpp", include.format("scheduling"))
        self.accepts("include/superoffload/offload/planning/a.hpp", include.format("state"))
        self.rejects("include/superoffload/offload/state/a.hpp", include.format("planning"), "scheduling only")
        self.rejects("include/superoffload/offload/scheduling/a.hpp", include.format("state"), "no other sub-directory")

    def test_umbrella_inside(self):
        self.rejects("include/superoffload/train/a.hpp", SPDX + "#include <superoffload/superoffload.hpp>\n", "umbrella")

    def test_size(self):
        def of(lines, name="class a final : public b<int> {", line="  int x;\n"):
            return SPDX + "namespace c {\n" + name + "\n" + line * (lines - 1) + "};\n}\n"
        header = "include/superoffload/core/a.hpp"
        self.accepts(header, of(350))
        self.rejects(header, of(351), "the body of a has 351 lines: expected 350")
        for name in ("template <class T>\nstruct a {", "class alignas(64) a : b {", "class x::a : public b, c {", "struct a<int> {"):
            self.accepts(header, of(350, name))
            self.rejects(header, of(351, name), "a has 351 lines")
        self.rejects("include/superoffload/core/impl/a_inl.hpp", of(351), "351 lines")
        self.rejects(header, of(351, line='  char const* x = "}"; // }\n'), "351 lines")
        self.rejects(header, of(351, line="  char x = '}';\n"), "351 lines")
        self.rejects(header, of(351, line="  f g() { return {}; }\n"), "351 lines")
        self.accepts(header, of(351, "namespace d {"))
        self.accepts("tests/core/a.hpp", of(351))

    def test_function(self):
        def of(lines, head="int f(int x) {", line="  x;\n", above=""):
            return SPDX + "namespace c {\nint before();\n" + above + head + "\n" + line * lines + "}\n}\n"
        header = "include/superoffload/core/a.hpp"
        self.accepts(header, of(60))
        self.rejects(header, of(61), ":6: a function's body has 61 lines: expected 60")
        for head in ("template <class T>\n__global__ void __launch_bounds__(32)\n    f(T a) {", "bool g() const {",
                     "auto h() -> int {", "a::a(int x) : b{x}, c{{1}, 2} {", "inline auto const l = [](int x) {",
                     "template <class T>\n  requires(c<T>)\nvoid f(T) {", "template <>\nint f<struct s>(int x) noexcept {"):
            self.accepts(header, of(60, head))
            self.rejects(header, of(61, head), "61 lines")
        for line in ("  for (;;) { g(); }\n", '  x = "}{{";  // }}}\n', "  auto y = [&](int z) { return z; };\n"):
            self.rejects(header, of(61, line=line), "61 lines")
        self.rejects("include/superoffload/cuda/kernels/a.cuh", of(61), "61 lines")
        self.rejects(header, of(61, "struct d {\n  int y{0};\n  int f() {").replace("}\n}\n", "}\n};\n}\n"), "61 lines")
        # What is long and no function: tables, lists, scopes.
        for head in ("inline constexpr int table[] = {", "inline constexpr std::array<int, f(3)> table{", "enum class e : int {",
                     "namespace d {", "struct d : e<int> {"):
            self.accepts(header, of(61, head))
        self.accepts("tests/core/a.hpp", of(61))

    def test_one_piece(self):
        def of(lines, *above):
            return SPDX + "".join(text + "\n" for text in above) + "template <class T>\nint f() {\n" + "  g();\n" * lines + "}\n"
        header = "include/superoffload/core/a.hpp"
        self.accepts(header, of(61, "/// Does it.", "// one piece: the table of an ABI"))
        self.rejects(header, of(60, "// one piece: the table of an ABI"), "is no function of more than 60 lines")
        self.rejects(header, of(61, "// one piece:"), "61 lines")
        self.rejects(header, of(61, "// it is one piece: so it is long"), "61 lines")
        result = self.run_on({header: of(61, "// one piece: the table of an ABI", "int g();")})
        self.assertEqual(len(result.stdout.splitlines()), 2, result.stdout)

    def test_unknown_directory(self):
        self.rejects("include/superoffload/misc/a.hpp", SPDX, "no entry")

    def test_quoted(self):
        self.rejects("include/superoffload/core/a.hpp", SPDX + '#include "b.hpp"\n', "expected <superoffload")

    def test_heavy(self):
        self.accepts("include/superoffload/io/json.hpp", SPDX + "#include <nlohmann/json.hpp>\n")
        self.accepts("include/superoffload/cpu/kernels/body.hpp", SPDX + "#include <Eigen/Core>\n")
        self.accepts("include/superoffload/text/impl/a_inl.hpp", SPDX + "#include <utf8proc.h>\n")
        self.rejects("include/superoffload/text/a.hpp", SPDX + "#include <utf8proc.h>\n", "heavy")
        self.rejects("include/superoffload/text/a.hpp", SPDX + "#include <superoffload/io/json.hpp>\n", "heavy")

    def test_licence(self):
        self.rejects("examples/a.cpp", "int main() {}\n", "SPDX")
        self.rejects("cmake/a.cmake", "\n", "SPDX")

    def test_script(self):
        self.rejects("tests/a", "#!/bin/sh\n", "not executable")
        self.accepts("tests/a", "true\n")

    def test_pragma_once(self):
        self.rejects("include/superoffload/core/a.hpp", SPDX.replace("#pragma once", ""), "#pragma once")

    def test_outside(self):
        self.rejects("README.md", "one\nsee .." + "/shared/x\n", "refers to")
        self.rejects("docs/a.txt", "/" + "work/main\n", "refers to")

    def test_headers_alone(self):
        self.rejects("include/superoffload/io/a.cpp", SPDX, "headers alone")

    def test_implementation(self):
        guarded = "\n#ifndef SUPEROFFLOAD_COMPILED\n#include <superoffload/io/impl/a_inl.hpp>\n#endif\n"
        self.accepts("include/superoffload/io/a.hpp", SPDX + guarded)
        self.rejects("include/superoffload/io/a.hpp", SPDX + "#include <superoffload/io/impl/a_inl.hpp>\n", "heavy")
        result = self.run_on({
            "include/superoffload/io/a.hpp": SPDX + guarded,
            "include/superoffload/io/impl/a_inl.hpp": SPDX + "#include <superoffload/io/a.hpp>\n"})
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_circle(self):
        guarded = "\n#ifndef SUPEROFFLOAD_COMPILED\n#include <superoffload/io/impl/a_inl.hpp>\n#endif\n"
        result = self.run_on({
            "include/superoffload/io/a.hpp": SPDX + guarded,
            "include/superoffload/io/impl/a_inl.hpp": SPDX + "#include <superoffload/io/b.hpp>\n",
            "include/superoffload/io/b.hpp": SPDX + "#include <superoffload/io/a.hpp>\n"})
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("includes itself through", result.stdout)

    def test_design(self):
        row = "| `io` | {} | files |\n"
        rows = "".join(f"| `{name}` | {allowed} | x |\n" for name, allowed in TABLE.items() if name != "io")
        for allowed, status in (("core", 0), ("core text", 1)):
            result = self.run_on({"docs/design.md": rows + row.format(allowed)})
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn("io may include 'core', not 'core text'", result.stdout)
        result = self.run_on({"docs/design.md": rows})
        self.assertIn("lacks io", result.stdout)

    def test_sub_directories(self):
        rows = "".join(f"| `{name}` | {allowed} | x |\n" for name, allowed in TABLE.items())
        for named, message in (("`io/a`, `io/b`", ""), ("`io/a`", "lacks io/b"),
                               ("`io/a`, `io/b`, `io/c`", "include/superoffload/io/c does not exist")):
            result = self.run_on({f"include/superoffload/io/{name}/d.hpp": SPDX for name in ("a", "b", "impl")}
                                 | {"docs/design.md": rows + f"| {named} | | x |\n"})
            self.assertEqual(result.returncode, 1 if message else 0, result.stdout + result.stderr)
            self.assertIn(message, result.stdout)


if __name__ == "__main__":
    unittest.main()
