import type { Peer } from "../../core/base/peer.js";
import { Tally } from "../../core/collections/tally.js";
import { allowsName, allowsNode, type NodeRule, type SaidNode } from "./node-rules.js";

/** Why a peer is refused, as label values of metrics. */
export type OwnerFault =
  | "identity_not_allowed"
  | "owned_by_another"
  | "too_many_of_identity"
  | "too_many_nodes";

/** How long a peer owns an Envoy's name after the last stream has ended, in milliseconds. */
export const ownedAfterMs = 60_000;

/** The inputs of `StreamOwners`. */
export interface StreamOwnersParts {
  readonly nowMs: () => number;
  /**
   * Which certificates may act as which nodes. Without rules: as any node that no other peer owns.
   */
  readonly rules: readonly NodeRule[];
  /** Maximum number of streams and of names per identity. */
  readonly streamsMax: number;
  readonly namesMax: number;
  /** Maximum number of names in total. */
  readonly allNamesMax: number;
}

interface OwnedName {
  owner: string;
  streamCount: number;
}

/**
 * Tracks which peer may act as which Envoy. With a certificate, the first peer that uses a name
 * owns it as long as it has a stream of that name, and for `ownedAfterMs` afterwards. Another
 * identity is refused. Without a certificate, the last peer that used a name owns it, because an
 * Envoy may return from another address.
 */
export class StreamOwners {
  readonly #parts: StreamOwnersParts;
  readonly #streamCounts = new Tally<string>();
  readonly #nameCounts = new Tally<string>();
  readonly #names = new Map<string, OwnedName>();
  /** Names without a stream, in the order in which their ownership ends. */
  readonly #idle = new Map<string, number>();

  constructor(parts: StreamOwnersParts) {
    this.#parts = parts;
  }

  /** A peer opens a stream, until `close`. Undefined if allowed. */
  open({ identity, names }: Peer): OwnerFault | undefined {
    const { rules, streamsMax } = this.#parts;
    if (this.#streamCounts.get(identity) >= streamsMax) return "too_many_of_identity";
    if (rules.length > 0 && !allowsName(rules, names)) return "identity_not_allowed";
    this.#streamCounts.add(identity, 1);
    return undefined;
  }

  close({ identity }: Peer): void {
    this.#streamCounts.add(identity, -1);
  }

  /** A stream states its node, until `release`. Undefined if allowed. */
  claim({ kind, identity, names }: Peer, said: SaidNode): OwnerFault | undefined {
    const { rules, namesMax, allNamesMax } = this.#parts;
    const { node } = said;
    this.#forget();
    if (rules.length > 0 && !allowsNode(rules, names, said)) return "identity_not_allowed";
    const known = this.#names.get(node);
    if (known !== undefined && known.owner !== identity && kind === "certificate") {
      return "owned_by_another";
    }
    if (known?.owner !== identity) {
      if (this.#nameCounts.get(identity) >= namesMax) return "too_many_of_identity";
      if (known === undefined && this.#names.size >= allNamesMax) return "too_many_nodes";
      if (known !== undefined) this.#nameCounts.add(known.owner, -1);
      this.#nameCounts.add(identity, 1);
    }
    this.#idle.delete(node);
    const streamCount = (known?.streamCount ?? 0) + 1;
    this.#names.set(node, { owner: identity, streamCount });
    return undefined;
  }

  /** A stream that has claimed a name has ended. */
  release(node: string): void {
    const known = this.#names.get(node);
    if (known === undefined) return;
    known.streamCount -= 1;
    if (known.streamCount === 0) this.#idle.set(node, this.#parts.nowMs() + ownedAfterMs);
  }

  #forget(): void {
    const nowMs = this.#parts.nowMs();
    for (const [node, untilMs] of this.#idle) {
      if (untilMs > nowMs) return;
      this.#idle.delete(node);
      const known = this.#names.get(node);
      this.#names.delete(node);
      if (known !== undefined) this.#nameCounts.add(known.owner, -1);
    }
  }
}
