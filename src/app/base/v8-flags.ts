import { setFlagsFromString } from "node:v8";

/** Amount of a function that runs before V8 optimizes it, by V8's major version. */
const optimizing: Readonly<Record<string, { readonly flag: string; readonly amount: number }>> = {
  // Node 20: bytes of bytecode.
  11: { flag: "--interrupt-budget", amount: 67_584 },
  // Node 22 and 24: calls.
  12: { flag: "--invocation-count-for-turbofan", amount: 3_000 },
  13: { flag: "--invocation-count-for-turbofan", amount: 3_000 },
};

/**
 * Makes V8 optimize a function only after four times as much of it. A command, or the thread that
 * parses a policy, runs much code for some milliseconds, and optimizing it in other threads takes a
 * quarter of all its CPU. `optimizeAsUsual` is for the code that decides afterwards.
 *
 * Call it when Node's own modules are loaded. V8 accepts their built-in compiled code only under
 * the flags of Node's build, so it compiles those that load later.
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
 * Makes V8 always allocate new objects among the young ones. Call it before anything is decided.
 *
 * V8 watches where objects are allocated. If the objects of a place survive for a while (those of
 * calls in flight when the collector runs, right after the start), V8 allocates them among the old
 * objects for good. A call's objects are dead within a millisecond, but there they wait for a round
 * over the whole heap, with everything that they refer to. That cost a third of a decision, in
 * three of four processes.
 *
 * Source: V8's flag `--allocation-site-pretenuring`, on by default.
 */
export function keepNewObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
