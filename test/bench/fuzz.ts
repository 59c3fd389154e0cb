import { fuzzWire } from "../support/wire-fuzz.js";

/** How much to fuzz. */
export interface FuzzOrder {
  /** The seed of the run. */
  readonly first: number;
  /** Inputs, from 1. */
  readonly count: number;
}

/** Inputs between two lines of progress. */
const progressInputs = 20_000;

/**
 * Runs the fuzzer of the wire over many inputs, telling how far it is.
 *
 * @returns the first input that failed, in words; undefined when none did
 */
export function runFuzz({ first, count }: FuzzOrder): string | undefined {
  const startMs = performance.now();
  const failure = fuzzWire({
    seed: first,
    count,
    onProgress: (done) => {
      if (done % progressInputs !== 0) return;
      const perSecond = Math.round((done * 1_000) / (performance.now() - startMs));
      process.stderr.write(`\r${done} of ${count} inputs, ${perSecond} a second   `);
    },
  });
  process.stderr.write("\n");
  return failure;
}
