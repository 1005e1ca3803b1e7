// zarrita.js, over a store in memory. ZARRITA names the folder in which `npm install zarrita` was done.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const folder = resolve(process.env.ZARRITA ?? ".", "node_modules", "zarrita");
const { main, version } = JSON.parse(readFileSync(join(folder, "package.json")));
const zarr = await import(pathToFileURL(join(folder, main)));
const integers = [8, 16, 32, 64].flatMap((bits) => [`int${bits}`, `uint${bits}`]);
const capabilities = {
  operations: ["open", "read", "write"],
  data_type: ["bool", "string", "float32", "float64", ...(globalThis.Float16Array ? ["float16"] : []), ...integers],
  chunk_grid: ["regular"], chunk_key_encoding: ["default", "v2"],
  codecs: ["sharding_indexed", ...zarr.registry.keys()], storage_transformers: [],
};
class Store extends Map {
  get(key) { return super.get(key) ?? this.other; } // other: what every other key holds
  getRange(key, { suffixLength: n, offset, length }) {
    return this.get(key)?.slice(...(n === undefined ? [offset, offset + length] : [-n]));
  }
}
const base64 = (data) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const storeOf = ({ store }) => new Store(Object.entries(store).map(([key, value]) => [`/${key}`, bytes(value)]));
const openIn = (store, { path }) => zarr.open.v3(zarr.root(store).resolve(`/${path}`));
const operations = {
  async open(message) { // codecs are first looked at when a chunk is decoded: here one that is a single byte
    const node = await openIn(Object.assign(storeOf(message), { other: new Uint8Array(1) }), message);
    const ofByte = (error) => { if (!(error instanceof zarr.CodecPipelineError)) throw error; };
    if (node instanceof zarr.Array) await node.getChunk(node.shape.map(() => 0)).catch(ofByte);
    return { document: null };
  },
  async read(message) {
    const array = await openIn(storeOf(message), message);
    const slices = message.selection.map((bounds) => zarr.slice(...bounds));
    const { data, shape, stride } = await (slices.length ? zarr.get(array, slices) : array.getChunk([]));
    let places = [0]; // row-major, whatever the order that the elements came in
    shape.forEach((n, i) => { places = places.flatMap((p) => Array.from({ length: n }, (_, k) => p + k * stride[i])); });
    if (Array.isArray(data)) return { shape, values: places.map((p) => String(data[p])) };
    const all = Buffer.from(data.buffer, data.byteOffset, data.byteLength), size = data.BYTES_PER_ELEMENT;
    return { shape, data: base64(Buffer.concat(places.map((p) => all.subarray(p * size, (p + 1) * size)))) };
  },
  async write(message) {
    const store = storeOf(message), array = await openIn(store, message), shape = array.shape;
    const data = message.values ?? new (await array.getChunk(shape.map(() => 0))).data.constructor(bytes(message.data).buffer);
    const stride = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
    await zarr.set(array, null, shape.length ? { data, shape, stride } : data.get?.(0) ?? data[0]);
    return { store: Object.fromEntries([...store].map(([key, value]) => [key.slice(1), base64(value)])) };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { type, id, op, ...message } = JSON.parse(line);
  if (type === "stop") break;
  const result = type === "run" && { id, ...(await operations[op](message).catch((error) => ({ refused: `${error}` }))) };
  await setImmediate(); // a promise that nobody awaited ends the process here, not in the next case
  console.log(JSON.stringify(result || { protocol: 1, name: "zarrita", version, capabilities }));
}
