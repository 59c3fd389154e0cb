import type { Algorithm, Limit } from "../../core/limits/limit.js";
import type { Block } from "../text/block.js";

/** Values that `spread` is checked against. */
interface SpreadContext {
  /** A wrong value is undefined. */
  readonly limit: {
    readonly hits: number | undefined;
    readonly burst: number | undefined;
    readonly algorithm: Algorithm | undefined;
  };
  readonly regionCount: number | undefined;
}

/** Minimum number of regions of a deployment with regions. */
const regionCountMin = 2;

/**
 * Reads the spread of a limit. Warns if it has no effect, or if the limit is too small: a region
 * lends half of its burst, so each region needs two hits. If the number of regions is unknown, the
 * minimum is assumed.
 */
export function readSpread(
  block: Block,
  spread: "region" | "global" | undefined,
  { limit: { hits, burst, algorithm }, regionCount = regionCountMin }: SpreadContext,
): Pick<Limit, "spread"> {
  const written = block.field("spread");
  if (spread !== "global" || written === undefined) return {};
  if (hits === 0) {
    block.refusePair("spread", "requests_per_unit: 0");
    return {};
  }
  const warn = (finding: { id: "HG175" | "HG176"; message: string; expected?: string }): void =>
    block.reader.warn(written.value ?? written.key, finding);
  const leastBurst = 2 * regionCount;
  const isWindow = algorithm?.kind === "fixed_window";
  if (regionCount < regionCountMin) {
    const message = "there are no regions, so this limit counts the hits of its own store alone";
    warn({ id: "HG176", message });
  } else if (burst !== undefined && burst < leastBurst) {
    const what = isWindow ? `a window of ${burst} hits` : `a burst of ${burst}`;
    const need = `which need ${leastBurst}`;
    const message = `${what} cannot be divided well among ${regionCount} regions, ${need}`;
    const name = isWindow ? "requests_per_unit" : "burst";
    warn({ id: "HG175", message, expected: `${name}: ${leastBurst} or more` });
  }
  return { spread };
}
