// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The page of html_report around its data. It loads nothing. All text from the data becomes text nodes.
#pragma once

namespace superoffload::train::detail {

inline constexpr char const* page_before_data = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>superoffload</title>
<style>
:root { --page: #f6f7f9; --card: #fff; --ink: #1b1f24; --soft: #5d6673; --line: #dfe3e8; --grid: #eceff2;
  --a: #2563a8; --b: #c2570c; --c: #2f7d4f; --d: #7a4fa3; --idle: #c9ced6; --shadow: 0 1px 2px #0001; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --card: #1d2126; --ink: #e6e9ed; --soft: #9aa4b1; --line: #333a42; --grid: #2a3037;
    --a: #6fb0f2; --b: #f0985a; --c: #6cc48f; --d: #bb97e0; --idle: #4a525c; --shadow: none; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 20px 16px 40px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; }
h1 { font-size: 21px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 8px; font-weight: 600; }
.soft, .note { color: var(--soft); }
.note { font-size: 13px; margin: 8px 0 0; }
.state { font-size: 13px; padding: 1px 10px; border-radius: 10px; border: 1px solid currentColor; overflow-wrap: anywhere; }
.bar { height: 6px; border-radius: 3px; background: var(--line); margin: 12px 0 4px; overflow: hidden; }
.bar div { height: 100%; background: var(--a); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; margin: 14px 0; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; box-shadow: var(--shadow); }
.tile { padding: 9px 12px; }
.tile b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { font-size: 12.5px; color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 14px; }
.card { padding: 14px 16px; min-width: 0; }
.wide { grid-column: 1 / -1; }
.legend { display: flex; flex-wrap: wrap; gap: 3px 14px; font-size: 12.5px; color: var(--soft); margin: 4px 0; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; vertical-align: -1px; }
.plot { position: relative; }
svg { display: block; width: 100%; overflow: visible; }
svg text { fill: var(--soft); font-size: 11.5px; font-family: inherit; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 5px;
  padding: 3px 8px; font-size: 12.5px; white-space: pre; box-shadow: 0 2px 6px #0003; visibility: hidden; z-index: 2; }
.memory { margin-bottom: 12px; }
.stack { position: relative; display: flex; height: 22px; background: var(--grid); border-radius: 4px; overflow: hidden; }
.stack div { height: 100%; }
.stack .peak { position: absolute; top: 0; width: 2px; background: var(--ink); }
.row { display: flex; justify-content: space-between; gap: 10px; font-size: 13.5px; margin-bottom: 3px; flex-wrap: wrap; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
td, th { text-align: left; padding: 3px 8px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; padding-right: 0; padding-left: 8px; white-space: nowrap; }
th { font-weight: 600; color: var(--soft); }
td:first-child { color: var(--soft); }
pre { font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-x: auto; margin: 0; }
footer { margin-top: 18px; font-size: 12.5px; color: var(--soft); }
</style>
</head>
<body>
<main><noscript>The page draws its curves with a script that it contains.</noscript></main>
<script id="data" type="application/json">)page";

inline constexpr char const* page_after_data = R"page(</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes = {}, text) {
  const svg = parent.namespaceURI === SVG || name === "svg";
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}
function number(x, digits = 4) {
  if (x === null || x === undefined || !isFinite(x)) return "\u2013";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return x.toExponential(2).replace(/\.?0*e\+?/, "e");
  if (size >= 1000) return Math.round(x).toLocaleString("en-US");
  return String(+x.toPrecision(digits));
}
function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; n >= 1024 && u < 4; n /= 1024) ++u;
  return (u === 0 || n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)) + " " + units[u];
}
function clock(s) {
  const two = n => String(n).padStart(2, "0");
  s = Math.max(0, Math.floor(s));
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`
                   : `${Math.floor(s / 60)}:${two(s % 60)}`;
}
const last = list => list && list.length ? list[list.length - 1] : null;

/* The head, and the most important numbers. */
document.title = `${data.title}: ${data.state}`;
const header = add(main, "header");
add(header, "h1", {}, data.title);
const good = data.state === "running" || data.state === "finished";
add(header, "span", {class: "state", style: `color: var(--${data.state === "finished" ? "c" : good ? "a" : "b"})`}, data.state);
const share = data.total_steps ? Math.min(1, data.step / data.total_steps) : 0;
add(add(main, "div", {class: "bar"}), "div", {style: `width: ${100 * share}%`});
add(main, "div", {class: "soft"}, `step ${data.step.toLocaleString("en-US")} of ${data.total_steps.toLocaleString("en-US")}, ` +
  `${clock(data.elapsed_s)} of this session; written ${data.written}`);
const tiles = add(main, "section", {class: "tiles"});
function tile(name, value) {
  const t = add(tiles, "div", {class: "tile"});
  add(t, "b", {}, value);
  add(t, "span", {}, name);
}
const p = data.points;
tile("loss", number(last(p.loss)));
if (data.evaluations.length) tile("held-out loss", number(last(data.evaluations)[1]));
tile("tokens/s", number(last(p.tokens_per_second)));
tile("ms a step", number(last(p.step_time_ms)));
if (data.mfu !== null) tile("of the GEMM rate (MFU)", (100 * data.mfu).toFixed(1) + " %");
if (p.hit_rate) tile("speculation hit rate", (100 * last(p.hit_rate)).toFixed(1) + " %");
if (data.device_memory.peak) tile("device memory, peak", bytes(data.device_memory.peak));
if (data.host_memory.peak) tile("host memory, peak", bytes(data.host_memory.peak));

const cards = add(main, "section", {class: "cards"});
function card(title, wide) {
  const c = add(cards, "div", {class: wide ? "card wide" : "card"});
  add(c, "h2", {}, title);
  return c;
}
const redraws = [];
function legend(parent, entries) {
  const l = add(parent, "div", {class: "legend"});
  for (const [name, color] of entries) {
    const e = add(l, "span");
    add(e, "i", {style: `background: ${color}`});
    e.append(name);
  }
}

/* Curves over steps. */
function ticks(low, high, about) {
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map(f => f * power).find(t => t >= rough);
  const all = [];
  for (let t = Math.ceil(low / tick) * tick; t <= high + tick * 1e-6; t += tick) all.push(Math.abs(t) < tick * 1e-6 ? 0 : t);
  return all;
}
function smooth(ys, width) {
  let sum = 0, weight = 0;
  const keep = Math.exp(-1 / width);
  return ys.map(y => {
    if (y === null) return null;
    sum = keep * sum + y;
    weight = keep * weight + 1;
    return sum / weight;
  });
}
function curves(title, series, fromZero) {
  const c = card(title);
  if (series.length > 1 || series[0].smooth) legend(c, series.filter(s => s.name).map(s => [s.name, s.color]));
  const plot = add(c, "div", {class: "plot"});
  const all = series.flatMap(s => s.ys.filter(y => y !== null));
  if (!all.length) { add(plot, "p", {class: "note"}, "no step yet"); return; }
  const svg = add(plot, "svg", {role: "img", "aria-label": title});
  const tip = add(plot, "div", {class: "tip"});
  redraws.push(() => {
    svg.replaceChildren();
    const width = plot.clientWidth, height = 210, left = 52, bottom = 34, top = 6, right = 8;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const xs = series.flatMap(s => s.xs);
    let x0 = Math.min(...xs), x1 = Math.max(...xs);
    if (x0 === x1) { x0 -= 1; x1 += 1; }
    let y0 = Math.min(...all), y1 = Math.max(...all);
    if (fromZero) y0 = Math.min(0, y0);
    const room = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 1;
    y1 += room;
    if (!fromZero || y0 < 0) y0 -= room;
    const X = x => left + (x - x0) / (x1 - x0) * (width - left - right);
    const Y = y => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
    for (const t of ticks(y0, y1, 5)) {
      add(svg, "line", {x1: left, x2: width - right, y1: Y(t), y2: Y(t), stroke: "var(--grid)"});
      add(svg, "text", {x: left - 7, y: Y(t) + 4, "text-anchor": "end"}, number(t, 3));
    }
    for (const t of ticks(x0, x1, width < 500 ? 4 : 8).filter(Number.isInteger))
      add(svg, "text", {x: X(t), y: height - bottom + 16, "text-anchor": "middle"}, t.toLocaleString("en-US"));
    add(svg, "line", {x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--line)"});
    add(svg, "text", {x: (left + width - right) / 2, y: height - 2, "text-anchor": "middle"}, "step");
    for (const s of series) {
      const path = (ys, attributes) => {
        let d = "", pen = "M";
        s.xs.forEach((x, i) => {
          if (ys[i] === null) { pen = "M"; return; }
          d += `${pen}${X(x).toFixed(1)} ${Y(ys[i]).toFixed(1)}`;
          pen = "L";
        });
        add(svg, "path", {d, fill: "none", stroke: s.color, "stroke-linejoin": "round", ...attributes});
      };
      if (s.smooth && s.xs.length > 20) {
        path(s.ys, {"stroke-width": 1, opacity: 0.35});
        path(smooth(s.ys, Math.max(5, s.xs.length / 40)), {"stroke-width": 2});
      } else {
        path(s.ys, {"stroke-width": 2});
      }
      if (s.dots || s.xs.length === 1)
        s.xs.forEach((x, i) => s.ys[i] !== null && add(svg, "circle", {cx: X(x), cy: Y(s.ys[i]), r: 3.5, fill: s.color}));
    }
    const cross = add(svg, "line", {y1: top, y2: height - bottom, stroke: "var(--soft)", visibility: "hidden"});
    const hide = () => { tip.style.visibility = "hidden"; cross.setAttribute("visibility", "hidden"); };
    plot.onpointerleave = hide;
    plot.onpointermove = event => {
      const at = x0 + (event.clientX - plot.getBoundingClientRect().left - left) / (width - left - right) * (x1 - x0);
      if (at < x0 || at > x1) { hide(); return; }
      const near = s => s.xs.reduce((best, x, i) => Math.abs(x - at) < Math.abs(s.xs[best] - at) ? i : best, 0);
      const step = series[0].xs[near(series[0])];
      tip.textContent = `step ${step.toLocaleString("en-US")}` +
        series.map(s => `\n${s.name || title} ${number(s.ys[near(s)], 5)}`).join("");
      const x = X(step);
      cross.setAttribute("x1", x); cross.setAttribute("x2", x); cross.setAttribute("visibility", "visible");
      tip.style.visibility = "visible";
      tip.style.top = "8px";
      tip.style.left = (x + 12 + tip.offsetWidth > width ? x - 12 - tip.offsetWidth : x + 12) + "px";
    };
  });
}
const xs = p.step;
const losses = [{name: "training", color: "var(--a)", xs, ys: p.loss || [], smooth: true}];
if (data.evaluations.length)
  losses.push({name: "held out", color: "var(--b)", xs: data.evaluations.map(e => e[0]), ys: data.evaluations.map(e => e[1]), dots: true});
curves("Loss", losses);
curves("Tokens per second", [{color: "var(--c)", xs, ys: p.tokens_per_second || []}], true);
curves("Gradient norm", [{color: "var(--d)", xs, ys: p.grad_norm || []}], true);
curves("Learning rate", [{color: "var(--b)", xs, ys: p.lr || []}], true);
if (p.hit_rate) {
  curves("Hit rate of speculative updates", [{color: "var(--c)", xs, ys: p.hit_rate}], true);
  curves("Model TFLOP/s", [{color: "var(--a)", xs, ys: p.model_tflops || []}], true);
}

/* Memory by kind. */
const palette = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#eeca3b", "#e45756", "#72b7b2"];
{
  const c = card("Memory by kind, as planned", true);
  const kinds = Object.keys(data.device_memory.kinds);
  for (const [name, m] of [["device", data.device_memory], ["host", data.host_memory]]) {
    const taken = Math.max(m.total, m.peak, 1);
    const whole = m.available > taken && m.available < 4 * taken ? m.available : 1.05 * taken;
    const block = add(c, "div", {class: "memory"});
    const row = add(block, "div", {class: "row"});
    add(row, "span", {}, name);
    add(row, "span", {class: "soft"}, `${bytes(m.total)} planned` + (m.available ? ` of ${bytes(m.available)}` : "") +
      (m.peak ? `, peak ${bytes(m.peak)}` : ""));
    const stack = add(block, "div", {class: "stack"});
    kinds.forEach((kind, i) => m.kinds[kind] && add(stack, "div",
      {style: `width: ${100 * m.kinds[kind] / whole}%; background: ${palette[i]}`, title: `${kind}: ${bytes(m.kinds[kind])}`}));
    if (m.peak) add(stack, "div", {class: "peak", style: `left: calc(${100 * m.peak / whole}% - 2px)`, title: `peak: ${bytes(m.peak)}`});
  }
  const table = add(c, "table");
  const head = add(table, "tr");
  add(head, "th", {}, "kind"); add(head, "th", {class: "n"}, "device"); add(head, "th", {class: "n"}, "host");
  kinds.forEach((kind, i) => {
    const device = data.device_memory.kinds[kind], host = data.host_memory.kinds[kind];
    if (!device && !host) return;
    const tr = add(table, "tr");
    const l = add(add(tr, "td"), "span", {class: "legend", style: "margin: 0"});
    const e = add(l, "span");
    add(e, "i", {style: `background: ${palette[i]}`});
    e.append(kind);
    add(tr, "td", {class: "n"}, device ? bytes(device) : "\u2013");
    add(tr, "td", {class: "n"}, host ? bytes(host) : "\u2013");
  });
  add(c, "p", {class: "note"}, "The vertical line is the measured peak: on the device of this program's allocations, on the host of " +
    "the whole process.");
}

/* The planned step beside a measured one. */
const colors = {forward: "#3b6ea5", backward: "#86b5e0", update: "#54a24b", "speculative update": "#9bd17d", commit: "#eeca3b",
  "commit and speculative update": "#d6a21e", "commit and update": "#9d755d", "old weights": "#e45756", gradient: "#f58518",
  weights: "#b279a2", sum: "#e59ac0", state: "#72b7b2", wait: "var(--idle)"};
{
  const c = card("A step, as planned and as measured", true);
  const shown = [data.planned, data.measured].filter(t => t && t.rows.some(r => r.spans.length));
  const used = new Set(shown.flatMap(t => t.rows.flatMap(r => r.spans.map(s => s[2]))));
  legend(c, Object.entries(colors).filter(([kind]) => used.has(kind)));
  const rows = data.planned.rows.map((r, i) => i).filter(i => shown.some(t => t.rows[i].spans.length));
  const longest = Math.max(...shown.map(t => t.ms), 1e-9);
  for (const t of shown) {
    const name = t === data.planned ? `as planned: ${number(t.ms)} ms` : `step ${t.step}, as measured: ${number(t.ms)} ms`;
    add(c, "div", {class: "row", style: "margin-top: 12px"}, name);
    const plot = add(c, "div", {class: "plot"});
    const svg = add(plot, "svg", {role: "img", "aria-label": name});
    redraws.push(() => {
      svg.replaceChildren();
      const width = plot.clientWidth, left = 98, right = 8, high = 24, height = rows.length * high + 30;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      const X = ms => left + ms / longest * (width - left - right);
      for (const tick of ticks(0, longest, width < 500 ? 4 : 9)) {
        add(svg, "line", {x1: X(tick), x2: X(tick), y1: 0, y2: rows.length * high, stroke: "var(--grid)"});
        add(svg, "text", {x: X(tick), y: rows.length * high + 16, "text-anchor": "middle"}, number(tick, 3) + (tick === 0 ? " ms" : ""));
      }
      rows.forEach((row, i) => {
        add(svg, "text", {x: left - 8, y: i * high + 16, "text-anchor": "end"}, t.rows[row].name);
        add(svg, "line", {x1: left, x2: width - right, y1: i * high + 22.5, y2: i * high + 22.5, stroke: "var(--grid)"});
        for (const [begin, end, kind, unit] of t.rows[row].spans) {
          const box = add(svg, "rect", {x: X(begin), width: Math.max(0.6, X(end) - X(begin)), y: i * high + 3, height: 17,
            style: `fill: ${colors[kind] || "var(--soft)"}`});
          add(box, "title", {}, `${kind} ${unit}, ${number(begin)} to ${number(end)} ms`);
        }
      });
      add(svg, "line", {x1: X(t.ms), x2: X(t.ms), y1: 0, y2: rows.length * high, stroke: "var(--ink)", "stroke-dasharray": "3 3"});
    });
  }
  if (!data.measured) add(c, "p", {class: "note"}, "No step has been recorded yet.");
  add(c, "p", {class: "note"}, "The plan's step goes from one gradient check to the next, the measured one from the start of a " +
    "forward to the end of the step. Of the threads of CPU Adam, the measured step shows the first.");
}

/* What was run, and where. */
function table(title, rows) {
  const t = add(card(title), "table");
  for (const [name, value] of rows) {
    const tr = add(t, "tr");
    add(tr, "td", {}, name);
    add(tr, "td", {}, value === "" ? "\u2013" : value);
  }
}
table("Configuration", data.settings);
table("Machine", data.machine);
add(card("Plan", true), "pre", {}, data.plan);
add(main, "footer", {}, `superoffload ${data.version}` + (data.stride > 1 ? `; each point of a curve is the mean of ${data.stride} steps` : ""));
const redraw = () => redraws.forEach(draw => draw());
redraw();
addEventListener("resize", redraw);
</script>
</body>
</html>
)page";

}  // namespace superoffload::train::detail
