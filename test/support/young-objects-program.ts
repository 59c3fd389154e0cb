/**
 * Makes objects that live on for a while, and tells how many bytes of the next ones are young:
 * after the call itself, or after a policy was parsed in its thread, which does it.
 */
import { getHeapSpaceStatistics } from "node:v8";
import { keepNewObjectsYoung } from "../../src/app/base/v8-flags.js";
import { parsePolicyInWorker } from "../../src/app/policy/policy-parsing.js";
import { systemClock } from "../../src/host/clock.js";

interface Made {
  readonly i: number;
  readonly of: { readonly i: number; readonly of: { readonly i: number } };
}

/** Three objects each. */
const makeCount = 2_000;

if (process.argv[2] === "policy") {
  const input = { kind: "texts", sources: [] } as const;
  await parsePolicyInWorker({ input, version: "1", clock: systemClock });
} else keepNewObjectsYoung();
const make = (i: number): Made => ({ i, of: { i, of: { i } } });
const kept = new Array<Made>(200_000);
for (let i = 0; i < 2_000_000; i += 1) kept[i % kept.length] = make(i);
// The most of five, since a collection may fall into one of them.
let most = 0;
for (let turn = 0; turn < 5; turn += 1) {
  const before = youngBytes();
  for (let i = 0; i < makeCount; i += 1) kept[i] = make(i);
  most = Math.max(most, youngBytes() - before);
}
process.stdout.write(`${most}\n`);

function youngBytes(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find((space) => space.space_name === "new_space")?.space_used_size ?? 0;
}
