import { readFileSync } from "node:fs";

/** Share of the time since it was made in which something on this machine waited for a core. */
export type CrowdedRatio = () => number;

/** A machine that runs a load and what it is for, and no more, has too few cores half the time. */
const defaultRatio = 0.5;

/** With more of it a test would say little. */
const slackMax = 0.15;

/**
 * Starts to look. Always 0 where the system does not tell.
 * Source: Linux, Documentation/accounting/psi.rst, "some", in microseconds.
 */
export function watchCrowding(): CrowdedRatio {
  const startMs = performance.now();
  const startUs = waitedUs();
  return () => (waitedUs() - startUs) / 1_000 / (performance.now() - startMs);
}

function waitedUs(): number {
  try {
    return Number(/^some .*total=(\d+)/m.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1]);
  } catch {
    return 0;
  }
}

/**
 * By how much the bounds of a load's share that is served are lower: not at all on a machine that
 * runs this and no more, and by a seventh on one that has other work all the time.
 *
 * @param lateRatio the share of requests that left late, which says the same of the load's program
 */
export function crowdedSlack(crowdedRatio: number, lateRatio = 0): number {
  const beyond = Math.max(0, crowdedRatio - defaultRatio) / (1 - defaultRatio);
  return Math.min(slackMax, Math.max(lateRatio, beyond * slackMax));
}
