// zarrita.js with a store in memory. ZARRITA is the folder in which `npm install zarrita` was run.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const folder = join(process.env.ZARRITA ?? ".", "node_modules", "zarrita");
const { main, version } = JSON.parse(readFileSync(join(folder, "package.json")));
const zarr = await import(pathToFileURL(join(folder, main)));
const integers = [8, 16, 32, 64].flatMap((n) => [`int${n}`, `uint${n}`]);
const capabilities = {
  operations: ["open", "read", "write"],
  data_type: ["bool", "string", "float32", "float64", ...(globalThis.Float16Array ? ["float16"] : []), ...integers],
  chunk_grid: ["regular"], chunk_key_encoding: ["default", "v2"], storage_transformers: [],
  codecs: ["sharding_indexed", ...zarr.registry.keys()],
};
class Store extends Map { // fallback: the value of every missing key
  get(key) { return super.get(key) ?? this.fallback; }
  getRange(key, { suffixLength: n, offset, length }) { return this.get(key)?.slice(...(n ? [-n] : [offset, offset + length])); }
}
const bufferOf = (data) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const storeOf = ({ store }) => new Store(Object.entries(store).map(([key, value]) => [`/${key}`, bytes(value)]));
const openIn = (store, { path }) => zarr.open.v3(zarr.root(store).resolve(`/${path}`));
const operations = {
  async open(message) { // zarrita checks codecs when it first decodes a chunk: decode a chunk of a single byte
    const node = await openIn(Object.assign(storeOf(message), { fallback: new Uint8Array(1) }), message);
    const ignoreDamage = (error) => { if (!(error instanceof zarr.CodecPipelineError)) throw error; };
    await node.getChunk?.(node.shape.map(() => 0)).catch(ignoreDamage);
    return { document: null };
  },
  async read(message) {
    const array = await openIn(storeOf(message), message), slices = message.selection.map((s) => zarr.slice(...s));
    const { data, shape, stride } = await (slices.length ? zarr.get(array, slices) : array.getChunk([]));
    const extend = (offsets, n, i) => offsets.flatMap((p) => Array.from({ length: n }, (_, k) => p + k * stride[i]));
    const offsets = shape.reduce(extend, [0]); // element offsets in row-major order, for any strides
    if (Array.isArray(data)) return { shape, values: offsets.map((p) => String(data[p])) };
    const parts = offsets.map((p) => bufferOf(data).subarray(p * data.BYTES_PER_ELEMENT, (p + 1) * data.BYTES_PER_ELEMENT));
    return { shape, data: Buffer.concat(parts).toString("base64") };
  },
  async write(message) {
    const store = storeOf(message), array = await openIn(store, message), shape = array.shape;
    const data = message.values ?? new (await array.getChunk(shape.map(() => 0))).data.constructor(bytes(message.data).buffer);
    const stride = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
    await zarr.set(array, null, shape.length ? { data, shape, stride } : data.get?.(0) ?? data[0]);
    return { store: Object.fromEntries([...store].map(([key, value]) => [key.slice(1), bufferOf(value).toString("base64")])) };
  },
};
const refusal = (error) => ({ // zarrita throws a special error class for unsupported requests
  [[error, error?.cause].some((e) => e instanceof zarr.UnsupportedError) ? "unsupported" : "refused"]: `${error?.cause ?? error}`,
});
for await (const line of createInterface({ input: process.stdin })) {
  const { type, id, op, ...message } = JSON.parse(line);
  if (type === "stop") break;
  const result = type === "run" && { id, ...(await operations[op](message).catch(refusal)) };
  await setImmediate(); // if a rejected promise was never awaited, the process ends now and not during the next case
  console.log(JSON.stringify(result || { protocol: 1, name: "zarrita", version, capabilities }));
}
