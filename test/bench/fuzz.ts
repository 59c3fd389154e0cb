import { fuzzConnections } from "../support/connection-fuzz.js";
import { type FuzzRun, fuzzWire } from "../support/wire-fuzz.js";

/** How much to fuzz. */
export interface FuzzOrder {
  /** The seed of the run. */
  readonly first: number;
  /** Inputs, from 1: half of them header blocks and frames, half of them whole connections. */
  readonly count: number;
}

/** Inputs between two lines of progress. */
const progressInputs = 20_000;

/**
 * Runs the fuzzers of the wire over many inputs, telling how far they are.
 *
 * @returns the first input that failed, in words; undefined when none did
 */
export async function runFuzz({ first, count }: FuzzOrder): Promise<string | undefined> {
  const connections = Math.floor(count / 2);
  const parts = count - connections;
  return (
    fuzzWire(runOf("blocks and frames", { seed: first, count: parts })) ??
    (await fuzzConnections(runOf("connections", { seed: first, count: connections })))
  );
}

/** A run that tells how far it is. */
function runOf(what: string, run: FuzzRun): FuzzRun {
  const startMs = performance.now();
  return {
    ...run,
    onProgress: (done) => {
      if (done % progressInputs !== 0 && done !== run.count) return;
      const perSecond = Math.round((done * 1_000) / (performance.now() - startMs));
      const line = `${done} of ${run.count} ${what}, ${perSecond} a second`;
      process.stderr.write(`\r${line}   ${done === run.count ? "\n" : ""}`);
    },
  };
}
