import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createUsageForm } from "../../src/core/usage/usage-forms.js";
import { createUsageReader } from "../../src/core/usage/usage-reader.js";
import { type UsageRecording, usageRecordings } from "./usage-recordings.js";

/** Prints what a reader of each form holds in the middle of a body, in bytes, as a JSON array. */

const readerCount = 1_000;
const auto = createUsageForm({ format: "auto", fields: {} });
const longModel = Buffer.from(`{"model":"${"m".repeat(2_000)}`);
const sources: readonly Pick<UsageRecording, "headers" | "body">[] = [
  ...usageRecordings,
  { headers: {}, body: longModel },
];
const readers: unknown[] = [];

function add({ headers, body }: (typeof sources)[number]): void {
  const reader = createUsageReader(auto, new Map(Object.entries(headers)));
  reader.push(body.subarray(0, -3));
  readers.push(reader);
}

function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  // Memory outside of the heap is given back by the round after the one that finds it unused.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

for (const source of sources) add(source);
let before = heldBytes();
const held = sources.map((source) => {
  for (let i = 0; i < readerCount; i += 1) add(source);
  // All are kept: what one form holds is the difference to the one before.
  const after = heldBytes();
  const bytes = (after - before) / readerCount;
  before = after;
  return bytes;
});
if (readers.length !== (readerCount + 1) * sources.length) throw new Error("readers are lost");
process.stdout.write(JSON.stringify(held));
