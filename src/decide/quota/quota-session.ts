import type { Peer } from "../../core/base/peer.js";
import type { QuotaAssignment, QuotaUsage } from "../../core/quota/quota.js";

/** What a bucket is told. */
export type QuotaInstruction =
  | { readonly kind: "assign"; readonly assignment: QuotaAssignment }
  /** Envoy drops it, and tells of it anew when it is used again. */
  | { readonly kind: "abandon" };

/** What an Envoy is told of one bucket. */
export interface QuotaAction {
  /** As the Envoy named it. */
  readonly id: Uint8Array;
  readonly reported: QuotaInstruction;
}

/** What an Envoy says of one bucket. */
export interface BucketReport {
  /** Tells it from the other buckets of the stream. */
  readonly key: string;
  /** As it came; it holds until the report is taken. */
  readonly id: Uint8Array;
  /** Its entries; asked for where the bucket is not known yet. */
  readonly entries: () => Readonly<Record<string, string>>;
  readonly usage: QuotaUsage;
}

/** Whose stream begins, and whom to wake. */
export interface QuotaCaller {
  /** What the Envoy calls itself; undefined: nothing that can be told from others. */
  readonly node: string | undefined;
  /** Who it is, whatever it calls itself. */
  readonly peer: Peer;
  /** Told when there is something to say. */
  readonly wake: () => void;
}

/** One stream, as those see it who divide quotas. */
export interface QuotaSession {
  /** Takes what was reported of buckets of a domain. */
  report(domain: string, reports: readonly BucketReport[]): void;
  /** What is to be said now, at most so much; from here on it counts as said. */
  takeActions(most: number): readonly QuotaAction[];
  /** The stream is over: what its buckets were told holds on until its time is up. */
  close(): void;
}

/** Who divides quotas, as streams see it. */
export interface DividesQuotas {
  open(caller: QuotaCaller): QuotaSession;
}
