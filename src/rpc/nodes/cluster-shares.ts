import { fairShares } from "../../core/feedback/fair-share.js";
import type { NodeShare } from "../../core/feedback/feedback.js";

/** What one cluster of an Envoy could use, lately. */
export interface ClusterDemand {
  readonly cluster: string;
  /** Requests that it would have in work at once: from 0, with fractions. */
  readonly demand: number;
  /** Of them, those at Envoy's priority HIGH; 0 where it does not say. */
  readonly highDemand: number;
}

/** A part that differs by no more than this from what it is, or by one, is left as it is. */
const keepRatio = 0.25;

/** What an unused cluster weighs, next to requests in work. */
const idleWeight = 0.1;

/**
 * Divides an Envoy's share of one service among the clusters in which it has that service: each has
 * a breaker of its own, so the whole share for each would let in as many times as much. Who has
 * traffic has more; one is left to each, since 0 would refuse everything, even where they add up to
 * more than the share then.
 *
 * Example: 12 between a cluster with 30 in work and one with 10: 9 and 3. 12 with an idle one: 11
 * and 1.
 */
export function divideShare(
  share: NodeShare,
  demands: readonly ClusterDemand[],
): ReadonlyMap<string, NodeShare> {
  const atDefault = divide(
    share.default,
    demands.map(({ demand, highDemand }) => demand - highDemand),
  );
  const high = divide(
    share.high,
    demands.map(({ highDemand }) => highDemand),
  );
  return new Map(
    demands.map(({ cluster }, i) => [cluster, { default: atDefault[i] ?? 1, high: high[i] ?? 0 }]),
  );
}

function divide(amount: number, demands: readonly number[]): readonly number[] {
  if (amount === 0) return [];
  if (amount <= demands.length) return demands.map(() => 1);
  return fairShares(
    amount,
    demands.map((demand) => ({ demand: amount, floor: 1, weight: Math.max(idleWeight, demand) })),
  );
}

/** The same for an Envoy over time: what differs by little stays, so that it is not told anew. */
export class ClusterShares {
  readonly #last = new Map<string, Division>();

  /** @param share above 0 */
  divide(
    service: string,
    share: NodeShare,
    demands: readonly ClusterDemand[],
  ): ReadonlyMap<string, NodeShare> {
    const parts = divideShare(share, demands);
    const last = this.#last.get(service);
    if (last !== undefined && isKept(last, { share, parts })) return last.parts;
    this.#last.set(service, { share, parts });
    return parts;
  }

  /** A service of which this Envoy has no clusters any more. */
  forget(service: string): void {
    this.#last.delete(service);
  }
}

interface Division {
  readonly share: NodeShare;
  readonly parts: ReadonlyMap<string, NodeShare>;
}

function isKept(last: Division, next: Division): boolean {
  if (last.share.default !== next.share.default || last.share.high !== next.share.high) {
    return false;
  }
  if (last.parts.size !== next.parts.size) return false;
  for (const [cluster, part] of next.parts) {
    const known = last.parts.get(cluster);
    if (known === undefined) return false;
    if (!isNear(known.default, part.default) || !isNear(known.high, part.high)) return false;
  }
  return true;
}

function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= Math.max(1, keepRatio * one);
}
