import { Tally } from "../collections/tally.js";
import type { FeedbackNode } from "./feedback-nodes.js";

/** How long an Envoy counts as a newcomer after its first request, in milliseconds. */
const newcomerMsMax = 5_000;

/** Envoys report once a second, so those of a starting fleet are all heard of within this time. */
const sameStartMsMax = 1_000;

/**
 * Returns Envoys whose numbers cover a part of a second, or whose callers are mostly still on their
 * way. One that came with the first of its identity is not included: it has none to compare with.
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
 * Returns the expected demand of an identity's newcomer: the mean demand of its earlier Envoys,
 * since traffic is normally balanced among the Envoys of one identity.
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
