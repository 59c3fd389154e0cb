import type { Peer } from "../../core/base/peer.js";
import { Tally } from "../../core/collections/tally.js";
import { allowsName, allowsNode, type NodeRule, type SaidNode } from "./node-rules.js";

/** What a peer may not do, as metrics name it. */
export type OwnerFault =
  | "identity_not_allowed"
  | "owned_by_another"
  | "too_many_of_identity"
  | "too_many_nodes";

/** How long the name of an Envoy is its peer's after its last stream has ended, in milliseconds. */
export const ownedAfterMs = 60_000;

/** What `StreamOwners` go by. */
export interface StreamOwnersParts {
  readonly nowMs: () => number;
  /** Whom a certificate may speak for; none: for whom nobody else speaks. */
  readonly rules: readonly NodeRule[];
  /** The most streams and names of one identity at once. */
  readonly streamsMax: number;
  readonly namesMax: number;
  /** The most names of all. */
  readonly allNamesMax: number;
}

interface OwnedName {
  owner: string;
  streamCount: number;
}

/**
 * Which peer speaks for which Envoy. With a certificate the first one that uses a name owns it, as
 * long as it has a stream of it and `ownedAfterMs` longer: another identity is refused. Without
 * one a name is whoever's that used it last, since an Envoy may come back from another address.
 */
export class StreamOwners {
  readonly #parts: StreamOwnersParts;
  readonly #streamCounts = new Tally<string>();
  readonly #nameCounts = new Tally<string>();
  readonly #names = new Map<string, OwnedName>();
  /** Names without a stream, those that end first before the others. */
  readonly #idle = new Map<string, number>();

  constructor(parts: StreamOwnersParts) {
    this.#parts = parts;
  }

  /** A stream of a peer begins, until `close`; undefined where it may. */
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

  /** A stream says whose it is, until `release`; undefined where it may be. */
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
