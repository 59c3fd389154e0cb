import { setFlagsFromString } from "node:v8";

/** Flags for four times as much of a function before V8 optimizes it, by V8's major version. */
const laterFlags: Readonly<Record<string, string>> = {
  // Node 20: bytes of bytecode, by default 67,584.
  11: "--interrupt-budget=270336",
  // Node 22 and 24: calls, by default 3,000.
  12: "--invocation-count-for-turbofan=12000",
  13: "--invocation-count-for-turbofan=12000",
};

/**
 * Makes V8 optimize later. A start runs much code for some milliseconds, and to optimize it in
 * other threads takes a quarter of its CPU. Decisions are optimized after 20,000 instead of 5,000;
 * the first 50,000 take as much CPU as before.
 *
 * To be called when Node's own modules are loaded: it compiles those that come later, since it
 * takes what was compiled when Node was built only under the flags of that time.
 */
export function optimizeLater(): void {
  const [major = ""] = process.versions.v8.split(".");
  const flag = laterFlags[major];
  if (flag !== undefined) setFlagsFromString(flag);
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
