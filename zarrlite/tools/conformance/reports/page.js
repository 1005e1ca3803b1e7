"use strict";
// A cell opens the panel with its cases; a case is drawn when it is unfolded. All text goes in as text.
const $ = (id) => document.getElementById(id);
const ORDER = ["crash", "timeout", "garbage", "wrong-data", "ignored-extension", "accepted-invalid", "refused-valid", "pass", "unsupported"];

function el(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
}

const data = (async () => {
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
})();

function hexdump(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const lines = [];
  for (let at = 0; at < bytes.length && at < 4096; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((b, i) => (i === 8 ? " " : "") + b.toString(16).padStart(2, "0")).join(" ").padEnd(49);
    const shown = row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex}  ${shown}`);
  }
  if (bytes.length > 4096) lines.push(`… ${bytes.length} bytes in all`);
  return lines.join("\n") || "no bytes";
}

// one line for what is short, indented where it is not
function pretty(value, width, indent = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = indent + "  ";
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((v) => pretty(v, width, inner))
    : Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${pretty(v, width, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  const flat = `${open}${items.join(", ")}${close}`;
  if (flat.length + indent.length < width && !flat.includes("\n")) return flat;
  return `${open}\n${items.map((item) => inner + item).join(",\n")}\n${indent}${close}`;
}

const WIDE = 96;
const HALF = 44;
const BINARY = new Set(["data", "value"]);

function block(title, content) {
  return content ? [el("h3", { textContent: title }), content] : [];
}

// what must come back, or what did: bytes as a hexdump, the rest as JSON
function answer(found) {
  const box = el("div");
  const rest = {};
  for (const [name, value] of Object.entries(found)) {
    if (BINARY.has(name) && typeof value === "string") box.append(el("code", { textContent: name }), el("pre", { textContent: hexdump(value) }));
    else if (name === "store" && Object.values(value).every((v) => typeof v === "string")) box.append(...values(value));
    else rest[name] = value;
  }
  if (Object.keys(rest).length) box.prepend(el("pre", { textContent: pretty(rest, HALF) }));
  return box;
}

function values(store) {
  return Object.entries(store).flatMap(([key, value]) => [el("code", { textContent: key }), el("pre", { textContent: hexdump(value) })]);
}

function drawCase(all, id, column) {
  const one = all.cases[id];
  const [, steps] = all.implementations[column].results[id];
  const body = el("div", { className: "body" });
  if (one.spec) {
    const quote = el("blockquote", {}, ...(one.spec.quote ? [`“${one.spec.quote}”`] : []));
    quote.append(el("footer", { textContent: `${one.spec.document} · ${one.spec.section}` }));
    body.append(quote);
  }
  if (one.ruling) body.append(el("p", { className: "say" }, el("b", { textContent: "Ruling: " }), one.ruling));
  const tags = Object.entries({ kind: one.kind, ...one.tags }).map(([k, v]) => `${k} ${v}`).join(" · ");
  body.append(el("p", { className: "dim", textContent: tags }));
  for (const [key, document] of Object.entries(one.documents)) body.append(...block(key, el("pre", { textContent: pretty(document, WIDE) })));
  if (Object.keys(one.values).length) body.append(...block("stored bytes", el("div", {}, ...values(one.values))));
  one.asks.forEach((ask, i) => {
    const step = steps[i];
    body.append(...block(ask.op, Object.keys(ask.request).length > 1 ? el("pre", { textContent: pretty(ask.request, WIDE) }) : el("span")));
    const got = el("div", {}, el("h3", { textContent: "got" }));
    if (step) {
      got.append(el("span", { className: `chip ${step.result}`, textContent: step.result }));
      if (step.detail) got.append(el("p", { className: "say", textContent: step.detail }));
      if (step.got) got.append(answer(step.got));
      else if (step.result === "pass") got.append(el("p", { className: "dim", textContent: "what is expected" }));
    } else got.append(el("p", { className: "dim", textContent: "was not asked" }));
    body.append(el("div", { className: "sides" }, el("div", {}, el("h3", { textContent: "expected" }), answer(ask.expected)), got));
  });
  const others = all.implementations.map((o) => el("span", { className: `chip ${o.results[id]?.[0]}`, textContent: o.name }));
  body.append(...block("everybody", el("p", {}, ...others)));
  return body;
}

function draw(all, ids, column, hidden) {
  const results = all.implementations[column].results;
  const sorted = ids.filter((id) => results[id] && !hidden.has(results[id][0]));
  sorted.sort((a, b) => ORDER.indexOf(results[a][0]) - ORDER.indexOf(results[b][0]));
  $("cases").replaceChildren(...sorted.map((id) => {
    const summary = el("summary", {}, el("code", { textContent: id }), all.cases[id].description);
    const box = el("details", { className: results[id][0] }, summary);
    box.dataset.id = id;
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(drawCase(all, id, column));
    });
    return box;
  }));
}

// the fragment of a cell: section, feature and implementation
function placeOf(all, cell) {
  const [section, feature] = all.rows[cell.dataset.row];
  return [section, feature, all.implementations[cell.dataset.column].name].map(encodeURIComponent).join("/");
}

async function openCell(cell) {
  const all = await data;
  const [, feature, ids] = all.rows[cell.dataset.row];
  const column = Number(cell.dataset.column);
  const one = all.implementations[column];
  document.querySelector(".cell.open")?.classList.remove("open");
  cell.classList.add("open");
  $("title").textContent = `${feature} · ${one.name} ${one.version}`;
  const hidden = new Set();
  const present = ORDER.filter((result) => ids.some((id) => one.results[id]?.[0] === result));
  $("chips").replaceChildren(...present.map((result) => {
    const count = ids.filter((id) => one.results[id]?.[0] === result).length;
    const chip = el("button", { className: `chip ${result}`, textContent: `${count} ${result}` });
    chip.addEventListener("click", () => {
      chip.classList.toggle("off") ? hidden.add(result) : hidden.delete(result);
      draw(all, ids, column, hidden);
    });
    return chip;
  }));
  draw(all, ids, column, hidden);
  $("panel").hidden = false;
  $("panel").scrollTop = 0;
  history.replaceState(null, "", `#${placeOf(all, cell)}`);
}

function close() {
  $("panel").hidden = true;
  document.querySelector(".cell.open")?.classList.remove("open");
  history.replaceState(null, "", " ");
}

$("matrix").addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) openCell(cell);
});
$("close").addEventListener("click", close);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
if (location.hash.length > 1) data.then((all) => {
  const cell = [...document.querySelectorAll(".cell")].find((one) => `#${placeOf(all, one)}` === location.hash);
  if (cell) openCell(cell);
});
