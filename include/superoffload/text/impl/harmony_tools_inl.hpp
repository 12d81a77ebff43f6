// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Tools as gpt-oss sees them: TypeScript.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace superoffload::text::detail {

inline constexpr std::string_view harmony_browser =
    "## browser\n\n"
    "// Tool for browsing.\n"
    "// The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n"
    "// Cite information from the tool using the following format:\n"
    "// `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.\n"
    "// Do not quote more than 10 words directly from the tool output.\n"
    "// sources=web (default: web)\n"
    "namespace browser {\n\n"
    "// Searches for information related to `query` and displays `topn` results.\n"
    "type search = (_: {\n"
    "query: string,\n"
    "topn?: number, // default: 10\n"
    "source?: string,\n"
    "}) => any;\n\n"
    "// Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, showing "
    "`num_lines` lines.\n"
    "// Valid link ids are displayed with the formatting: `【{id}†.*】`.\n"
    "// If `cursor` is not provided, the most recent page is implied.\n"
    "// If `id` is a string, it is treated as a fully qualified URL associated with `source`.\n"
    "// If `loc` is not provided, the viewport will be positioned at the beginning of the document or "
    "centered on the most relevant passage, if available.\n"
    "// Use this function without `id` to scroll to a new location of an opened page.\n"
    "type open = (_: {\n"
    "id?: number | string, // default: -1\n"
    "cursor?: number, // default: -1\n"
    "loc?: number, // default: -1\n"
    "num_lines?: number, // default: -1\n"
    "view_source?: boolean, // default: false\n"
    "source?: string,\n"
    "}) => any;\n\n"
    "// Finds exact matches of `pattern` in the current page, or the page given by `cursor`.\n"
    "type find = (_: {\n"
    "pattern: string,\n"
    "cursor?: number, // default: -1\n"
    "}) => any;\n\n"
    "} // namespace browser\n\n";

inline constexpr std::string_view harmony_python =
    "## python\n\n"
    "Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. "
    "This tool should be used for internal reasoning, but not for code that is intended to be visible to the "
    "user (e.g. when creating plots, tables, or files).\n\n"
    "When you send a message containing Python code to python, it will be executed in a stateful Jupyter "
    "notebook environment. python will respond with the output of the execution or time out after 120.0 "
    "seconds. The drive at '/mnt/data' can be used to save and persist user files. Internet access for this "
    "session is UNKNOWN. Depends on the cluster.\n\n";

/// The values' texts with `between` between them.
SUPEROFFLOAD_INLINE std::string joined(std::vector<json_value> const& values, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += i == 0 ? std::string_view{} : between;
    out += to_python_text(values[i]);
  }
  return out;
}

SUPEROFFLOAD_INLINE std::string typescript_of(chat_field const& schema);

SUPEROFFLOAD_INLINE std::string typescript_of_array(chat_field const& schema) {
  std::string const nullable = schema.raw()["nullable"].truthy() ? " | null" : "";
  auto const items = schema["items"];
  if (!items.truthy()) {
    return "any[]" + nullable;
  }
  auto const& type = items.raw()["type"];
  if (type.is_text("string") || type.is_text("number") || type.is_text("integer") ||
      type.is_text("boolean")) {
    return (type.is_text("integer") ? "number" : type.text) + "[]" + nullable;
  }
  auto const element = typescript_of(items);
  auto const characters = std::ranges::count_if(element, [](char c) { return (c & 0xc0) != 0x80; });
  return (element == "object | object" || characters > 50 ? "any" : element) + "[]" + nullable;
}

SUPEROFFLOAD_INLINE std::string typescript_of_variants(chat_field const& variants) {
  std::string out;
  for (std::size_t i = 0; i < variants.array().size(); ++i) {
    auto const variant = variants[i];
    out += typescript_of(variant);
    if (auto const description = variant["description"]; description.truthy()) {
      out += "// " + description.text();
    }
    if (auto const initial = variant["default"]; initial.defined()) {
      out += std::string(20, ' ') + "// default: " + to_json(initial.raw());
    }
    out += i + 1 < variants.size() ? " | \n" : "";
  }
  return out;
}

SUPEROFFLOAD_INLINE std::string typescript_of_object(chat_field const& schema) {
  auto const properties = schema["properties"];
  if (!properties.truthy()) {
    return "object";
  }
  auto const required = texts_of(schema.raw()["required"]);
  std::string out = "{\n";
  for (std::size_t i = 0; i < properties.object().size(); ++i) {
    auto const& name = properties.raw().names[i];
    out += name + (required.contains(name) ? "" : "?") + ": \n" + std::string(16, ' ') +
           typescript_of(properties[i]) + (i + 1 < properties.size() ? ", " : "");
  }
  return out + "}";
}

SUPEROFFLOAD_INLINE std::string typescript_of(chat_field const& schema) {
  auto const& type = schema.raw()["type"];
  if (type.is_text("array")) {
    return typescript_of_array(schema);
  }
  if (type.is_array() && !type.values.empty()) {
    return joined(type.values, " | ");
  }
  if (schema["oneOf"].truthy()) {
    return typescript_of_variants(schema["oneOf"]);
  }
  if (type.is_text("string")) {
    if (auto const choices = schema["enum"]; choices.truthy()) {
      return "\"" + joined(choices.array().raw().values, "\" | \"") + "\"";
    }
    return schema.raw()["nullable"].truthy() ? "string | null" : "string";
  }
  if (type.is_text("number") || type.is_text("integer")) {
    return "number";
  }
  return type.is_text("boolean") ? "boolean" : type.is_text("object") ? typescript_of_object(schema) : "any";
}

SUPEROFFLOAD_INLINE std::string typescript_of_parameter(std::string_view name, chat_field const& schema,
                                                        bool required) {
  std::string out;
  if (auto const description = schema["description"]; description.truthy()) {
    out += "// " + description.text() + "\n";
  }
  out += concat(name, required ? "" : "?", ": ", typescript_of(schema));
  if (auto const initial = schema["default"]; initial.defined()) {
    out += schema["enum"].truthy()    ? ", // default: " + initial.text()
           : schema["oneOf"].truthy() ? "// default: " + initial.text()
                                      : ", // default: " + to_json(initial.raw());
  }
  return out + ",\n";
}

SUPEROFFLOAD_INLINE std::string harmony_namespace(std::string_view name, chat_field const& tools) {
  std::string out = concat("## ", name, "\n\nnamespace ", name, " {\n\n");
  for (std::size_t i = 0; i < tools.size(); ++i) {
    auto const function = tools[i]["function"].object();
    out += "// " + function["description"].text() + "\ntype " + function["name"].text() + " = ";
    auto const parameters = function["parameters"];
    auto const properties = parameters["properties"];
    if (!properties.truthy()) {
      out += "() => any;\n\n";
      continue;
    }
    auto const required = texts_of(parameters.raw()["required"]);
    out += "(_: {\n";
    for (std::size_t k = 0; k < properties.object().size(); ++k) {
      auto const& parameter = properties.raw().names[k];
      out += typescript_of_parameter(parameter, properties[k], required.contains(parameter));
    }
    out += "}) => any;\n\n";
  }
  return out + concat("} // namespace ", name);
}

}  // namespace superoffload::text::detail
