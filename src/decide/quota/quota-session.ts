import type { Peer } from "../../core/base/peer.js";
import type { QuotaAssignment, QuotaUsage } from "../../core/quota/quota.js";

/** An instruction for a bucket. */
export type QuotaInstruction =
  | { readonly kind: "assign"; readonly assignment: QuotaAssignment }
  /** Envoy drops the bucket and reports it again when it is next used. */
  | { readonly kind: "abandon" };

/** An instruction for one bucket of an Envoy. */
export interface QuotaAction {
  /** As the Envoy encoded it, each byte as one character. */
  readonly id: string;
  readonly reported: QuotaInstruction;
}

/** An Envoy's report of one bucket. */
export interface BucketReport extends QuotaUsage {
  /** The bucket's id as received, each byte as one character. */
  readonly id: string;
}

/** A bucket id that was read. */
export interface BucketId {
  /** Identifies the bucket within its stream: the same for the same entries in any order. */
  readonly key: string;
  readonly entries: () => Readonly<Record<string, string>>;
}

/** The owner of a new stream, and its callback. */
export interface QuotaCaller {
  /** The Envoy's name for itself. Undefined if it has no distinguishable name. */
  readonly node: string | undefined;
  /** Its authenticated identity, whatever its name. */
  readonly peer: Peer;
  /** Reads an id that the stream has not reported before. Undefined if that is not possible. */
  readonly readId: (id: string) => BucketId | undefined;
  /** Called when there is something to send. */
  readonly wake: () => void;
}

/** One stream, as the quota registry provides it to the transport. */
export interface QuotaSession {
  /** Processes reports of buckets in a domain. @returns the cost, in units of a known bucket's */
  report(domain: string, reports: readonly BucketReport[]): number;
  /** Returns up to `most` instructions to send. They count as sent from then on. */
  takeActions(most: number): readonly QuotaAction[];
  /** The stream has ended. The assignments of its buckets stay valid until they expire. */
  close(): void;
}

/** Divides quotas, as the transport sees it. */
export interface DividesQuotas {
  open(caller: QuotaCaller): QuotaSession;
}
