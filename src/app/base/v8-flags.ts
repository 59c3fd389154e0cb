import { setFlagsFromString } from "node:v8";

/** How much of a function runs before V8 optimizes it, by V8's major version. */
const optimizing: Readonly<Record<string, { readonly flag: string; readonly amount: number }>> = {
  // Node 20: bytes of bytecode.
  11: { flag: "--interrupt-budget", amount: 67_584 },
  // Node 22 and 24: calls.
  12: { flag: "--invocation-count-for-turbofan", amount: 3_000 },
  13: { flag: "--invocation-count-for-turbofan", amount: 3_000 },
};

/**
 * Makes V8 optimize after four times as much of a function. A command, or the thread that parses a
 * policy, runs much code for some milliseconds, and to optimize it in other threads takes a quarter
 * of all its CPU. `optimizeAsUsual` is for what decides afterwards.
 *
 * To be called when Node's own modules are loaded: it compiles those that come later, since it
 * takes what was compiled when Node was built only under the flags of that time.
 */
export function optimizeLater(): void {
  optimizeAfter(4);
}

/** Ends `optimizeLater`. */
export function optimizeAsUsual(): void {
  optimizeAfter(1);
}

function optimizeAfter(times: number): void {
  const [major = ""] = process.versions.v8.split(".");
  const known = optimizing[major];
  if (known !== undefined) setFlagsFromString(`${known.flag}=${known.amount * times}`);
}

/**
 * Makes new objects begin among the young ones, always. To be called before anything is decided.
 *
 * V8 watches where objects are made, and moves a place whose objects lived on for a while (those of
 * calls that were in flight when the collector came, right after the start) to the old ones for
 * good. There a call's objects, which are dead within a millisecond, wait for a round over
 * everything, and so does all that they lead to: that cost a third of a decision, in three of four
 * processes.
 *
 * Source: V8's flag `--allocation-site-pretenuring`, on by default.
 */
export function keepNewObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
