import { Tally } from "../collections/tally.js";
import type { FeedbackNode } from "./feedback-nodes.js";

/** For how long after its first request an Envoy is taken to ask for as much as the others. */
const newcomerMsMax = 5_000;

/** Envoys report once a second: those of a fleet that starts are heard of within so long. */
const sameStartMsMax = 1_000;

/**
 * Those whose numbers are of a part of a second, or of callers of whom most are still on their way.
 * Who came with the first of its identity is none: there is nobody to compare it with.
 */
export function newcomersOf(
  askers: readonly FeedbackNode[],
  nowMs: number,
): ReadonlySet<FeedbackNode> {
  const firstMs = new Map<string | undefined, number>();
  const late = askers.filter(({ owner, askedMs = nowMs }) => {
    firstMs.set(owner, Math.min(askedMs, firstMs.get(owner) ?? askedMs));
    return nowMs - askedMs < newcomerMsMax;
  });
  const isAfterOthers = ({ owner, askedMs = nowMs }: FeedbackNode): boolean =>
    askedMs - (firstMs.get(owner) ?? askedMs) > sameStartMsMax;
  return new Set(late.filter(isAfterOthers));
}

/**
 * What a newcomer of an identity will be asked for: those of one identity are balanced, as a rule,
 * so as much as those before it are in the mean.
 */
export function meanDemands(known: readonly FeedbackNode[]): (owner: string | undefined) => number {
  const sums = new Tally<string | undefined>();
  const counts = new Tally<string | undefined>();
  for (const { owner, demand } of known) {
    sums.add(owner, demand);
    counts.add(owner, 1);
  }
  return (owner) => sums.get(owner) / Math.max(1, counts.get(owner));
}
