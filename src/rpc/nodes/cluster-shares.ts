import { fairShares } from "../../core/feedback/fair-share.js";
import type { NodeShare } from "../../core/feedback/feedback.js";

/** The recent demand of one cluster of an Envoy. */
export interface ClusterDemand {
  readonly cluster: string;
  /** The number of concurrent requests that it could use, at least 0, possibly fractional. */
  readonly demand: number;
  /** The part of it at Envoy's priority HIGH; 0 if unknown. */
  readonly highDemand: number;
}

/** A part that changes by at most this fraction, or by one, is kept. */
const keepRatio = 0.25;

/** The weight of an unused cluster, relative to one request in flight. */
const idleWeight = 0.1;

/**
 * Divides an Envoy's share of one service among the Envoy's clusters for that service. Each cluster
 * has its own circuit breaker, so giving each the whole share would multiply the limit. Clusters
 * with traffic get more. Each gets at least one, because 0 would deny everything, even if the sum
 * then exceeds the share.
 *
 * Example: 12 among clusters with 30 and 10 requests in flight gives 9 and 3. 12 with an idle
 * cluster gives 11 and 1.
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

/** Divides the shares of one Envoy over time. Keeps parts that change little, to avoid updates. */
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

  /** Removes a service that this Envoy no longer has clusters for. */
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
