"use strict";
// A cell opens the panel with its cases; a case is rendered when it is unfolded. All text is inserted as text.
const $ = (id) => document.getElementById(id);
const MAX_DUMP = 4096; // bytes; a hexdump of a longer value is cut
// order of the cases in the panel
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
  for (let offset = 0; offset < bytes.length && offset < MAX_DUMP; offset += 16) {
    const row = [...bytes.subarray(offset, offset + 16)];
    const hex = row.map((b, i) => (i === 8 ? " " : "") + b.toString(16).padStart(2, "0")).join(" ").padEnd(49);
    const shown = row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${offset.toString(16).padStart(6, "0")}  ${hex}  ${shown}`);
  }
  if (bytes.length > MAX_DUMP) lines.push(`… ${bytes.length} bytes in total`);
  return lines.join("\n") || "no bytes";
}

// JSON in one line if it fits into `width` characters, else indented
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

const WIDE = 96; // characters of a line in the full width of the panel
const HALF = 44; // characters of a line in half of it
const BINARY = new Set(["data", "value"]); // members of an answer that are base64

function block(title, content) {
  return content ? [el("h3", { textContent: title }), content] : [];
}

// an answer, expected or given: bytes as hexdumps, the other members as JSON
function answer(members) {
  const box = el("div");
  const rest = {};
  for (const [name, value] of Object.entries(members)) {
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

function renderCase(all, id, column) {
  const testCase = all.cases[id];
  const [, results] = all.implementations[column].results[id];
  const body = el("div", { className: "body" });
  if (testCase.spec) {
    const quote = el("blockquote", {}, ...(testCase.spec.quote ? [`“${testCase.spec.quote}”`] : []));
    quote.append(el("footer", { textContent: `${testCase.spec.document} · ${testCase.spec.section}` }));
    body.append(quote);
  }
  if (testCase.ruling) body.append(el("p", { className: "note" }, el("b", { textContent: "Ruling: " }), testCase.ruling));
  const tags = Object.entries({ kind: testCase.kind, ...testCase.tags }).map(([k, v]) => `${k} ${v}`).join(" · ");
  body.append(el("p", { className: "dim", textContent: tags }));
  for (const [key, document] of Object.entries(testCase.documents)) body.append(...block(key, el("pre", { textContent: pretty(document, WIDE) })));
  if (Object.keys(testCase.values).length) body.append(...block("stored bytes", el("div", {}, ...values(testCase.values))));
  testCase.steps.forEach((step, i) => {
    const outcome = results[i];
    body.append(...block(step.op, Object.keys(step.request).length > 1 ? el("pre", { textContent: pretty(step.request, WIDE) }) : el("span")));
    const got = el("div", {}, el("h3", { textContent: "got" }));
    if (outcome) {
      got.append(el("span", { className: `chip ${outcome.result}`, textContent: outcome.result }));
      if (outcome.detail) got.append(el("p", { className: "note", textContent: outcome.detail }));
      if (outcome.got) got.append(answer(outcome.got));
      else if (outcome.result === "pass") got.append(el("p", { className: "dim", textContent: "the expected answer" }));
    } else got.append(el("p", { className: "dim", textContent: "was not requested" }));
    body.append(el("div", { className: "sides" }, el("div", {}, el("h3", { textContent: "expected" }), answer(step.expected)), got));
  });
  const others = all.implementations.map((o) => el("span", { className: `chip ${o.results[id]?.[0]}`, textContent: o.name }));
  body.append(...block("all implementations", el("p", {}, ...others)));
  return body;
}

function renderCases(all, ids, column, hidden) {
  const results = all.implementations[column].results;
  const sorted = ids.filter((id) => results[id] && !hidden.has(results[id][0]));
  sorted.sort((a, b) => ORDER.indexOf(results[a][0]) - ORDER.indexOf(results[b][0]));
  $("cases").replaceChildren(...sorted.map((id) => {
    const summary = el("summary", {}, el("code", { textContent: id }), all.cases[id].description);
    const box = el("details", { className: results[id][0] }, summary);
    box.dataset.id = id;
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(renderCase(all, id, column));
    });
    return box;
  }));
}

// the URL fragment of a cell: section, feature and implementation
function fragmentOf(all, cell) {
  const [section, feature] = all.rows[cell.dataset.row];
  return [section, feature, all.implementations[cell.dataset.column].name].map(encodeURIComponent).join("/");
}

async function openCell(cell) {
  const all = await data;
  const [, feature, ids] = all.rows[cell.dataset.row];
  const column = Number(cell.dataset.column);
  const implementation = all.implementations[column];
  document.querySelector(".cell.open")?.classList.remove("open");
  cell.classList.add("open");
  $("title").textContent = `${feature} · ${implementation.name} ${implementation.version}`;
  const hidden = new Set();
  const present = ORDER.filter((result) => ids.some((id) => implementation.results[id]?.[0] === result));
  $("chips").replaceChildren(...present.map((result) => {
    const count = ids.filter((id) => implementation.results[id]?.[0] === result).length;
    const chip = el("button", { className: `chip ${result}`, textContent: `${count} ${result}` });
    chip.addEventListener("click", () => {
      chip.classList.toggle("off") ? hidden.add(result) : hidden.delete(result);
      renderCases(all, ids, column, hidden);
    });
    return chip;
  }));
  renderCases(all, ids, column, hidden);
  $("panel").hidden = false;
  $("panel").scrollTop = 0;
  history.replaceState(null, "", `#${fragmentOf(all, cell)}`);
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
  const cell = [...document.querySelectorAll(".cell")].find((other) => `#${fragmentOf(all, other)}` === location.hash);
  if (cell) openCell(cell);
});
