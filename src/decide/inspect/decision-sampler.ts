import type { Clock, Random } from "../../core/base/clock.js";
import { charCountOf, type DescriptorEntry } from "../../core/limits/key.js";
import type { DescriptorVerdict } from "../../core/limits/verdict.js";
import type {
  AnsweredCall,
  DecisionObserver,
  ObservedCall,
} from "../rate-limit/decision-observer.js";
import type { PreparedDescriptor, PreparedQuery } from "../rate-limit/prepared-query.js";
import { CallSampler } from "./call-sampler.js";
import { DecisionTail, type TailFilter, type TailFollower, tailCharsMax } from "./decision-tail.js";
import { KeySketches, type SeenTime, type TopKey } from "./key-sketches.js";
import { type NearLimitKey, NearLimitKeys } from "./near-limit-keys.js";
import { type RuleSelector, seenKey } from "./seen-key.js";

/** Dependencies of a `DecisionSampler`. */
export interface DecisionSamplerParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Approximate maximum size of the most frequent keys, in bytes. Default: unlimited. */
  readonly frequentKeysBytesMax?: number;
}

interface SampledCall {
  /** Number of calls that it represents in the sketches. 0: it is not in their sample. */
  readonly callCount: number;
  readonly followers: readonly TailFollower[];
}

/**
 * Samples the calls that this replica answers: the most frequent keys, those near their limits, and
 * decisions for followers. It contains callers' values, so it is for the admin API only, not for
 * logs or labels.
 */
export class DecisionSampler implements DecisionObserver {
  readonly #clock: Clock;
  readonly #sampler: CallSampler;
  readonly #sketches: KeySketches;
  readonly #nearKeys = new NearLimitKeys();
  readonly #tail: DecisionTail;
  #tooLongCount = 0;

  constructor({ clock, random, frequentKeysBytesMax }: DecisionSamplerParts) {
    this.#clock = clock;
    this.#sampler = new CallSampler(clock, random);
    this.#tail = new DecisionTail({ clock, random });
    this.#sketches = new KeySketches(this.#time(), frequentKeysBytesMax);
  }

  /** Number of descriptors that were skipped because they are too long to be recorded. */
  get tooLongCount(): number {
    return this.#tooLongCount;
  }

  /** The most frequent keys. */
  top(
    selector: RuleSelector,
    asked: { readonly order: "hits" | "denials"; readonly countMax: number },
  ): { readonly keys: readonly TopKey[]; readonly sinceEpochMs: number } {
    return this.#sketches.top(selector, { ...asked, ...this.#time() });
  }

  /** Keys near their limits, the fullest first. */
  near(
    selector: RuleSelector,
    asked: { readonly usedRatioMin: number; readonly countMax: number },
  ): readonly NearLimitKey[] {
    return this.#nearKeys.near(selector, { ...asked, epochMs: this.#time().epochMs });
  }

  /** Undefined: there are already `tailFollowersMax` followers. */
  follow(filter: TailFilter): TailFollower | undefined {
    return this.#tail.follow(filter);
  }

  /** See `DecisionObserver`. */
  wants(prepared: PreparedQuery): boolean {
    const isSampled = this.#sampler.wants();
    // Nearly always the case: every call pays for any other work here.
    if (!this.#tail.isFollowed) return isSampled;
    return this.#tail.wants(prepared) || isSampled;
  }

  /** See `DecisionObserver`. */
  begin(nowMs: number): ObservedCall | undefined {
    const followers = this.#tail.chosen();
    const callCount = this.#sampler.isDue ? this.#sampler.take(nowMs) : 0;
    if (callCount === 0 && followers.length === 0) return undefined;
    return { note: (call) => this.#note({ callCount, followers }, call) };
  }

  #note(sampled: SampledCall, call: AnsweredCall): void {
    const time = this.#time();
    for (let i = 0; i < call.prepared.descriptors.length; i += 1) {
      const seen = seenDescriptor(call, i);
      if (seen === undefined) continue;
      if (sampled.callCount > 0) this.#count(seen, call, { ...time, times: sampled.callCount });
      if (sampled.followers.length > 0) this.#show(seen, call, { sampled, time });
    }
  }

  #count(
    { descriptor, entries, status }: SeenDescriptor,
    { prepared }: AnsweredCall,
    seen: SeenTime & { readonly times: number },
  ): void {
    if (descriptor.kind !== "limited" && descriptor.kind !== "unlimited") return;
    const { rule } = descriptor;
    if (rule === undefined) return;
    const key = seenKey(entries);
    if (key === undefined) {
      this.#tooLongCount += 1;
      return;
    }
    const { isOver, currentLimit, limitRemaining = 0 } = status;
    this.#sketches.count(rule, key, { ...seen, isOver });
    // A bucket that a flood of new keys shares belongs to no single key.
    if (currentLimit === undefined || !prepared.isKeepable) return;
    const { burst, name: limitName } = currentLimit;
    const usedRatio = burst === 0 || isOver ? 1 : Math.max(0, 1 - limitRemaining / burst);
    this.#nearKeys.note(rule, key, { limitName, usedRatio, isOver, seenEpochMs: seen.epochMs });
  }

  #show(
    { descriptor, index, entries, status }: SeenDescriptor,
    call: AnsweredCall,
    { sampled, time }: { readonly sampled: SampledCall; readonly time: SeenTime },
  ): void {
    const { query, hits } = call;
    if (charCountOf(entries) > tailCharsMax) {
      this.#tooLongCount += 1;
      return;
    }
    this.#tail.show(sampled.followers, {
      epochMs: time.epochMs,
      domain: query.domain,
      entries,
      ruleLabel: "rule" in descriptor ? descriptor.rule?.label : undefined,
      isDenied: status.isOver,
      hits: typeof hits === "number" ? hits : (hits[index] ?? 1),
      remainingHits: status.limitRemaining ?? 0,
      decidedBy: decidedBy(descriptor, call),
    });
  }

  #time(): SeenTime {
    return { nowMs: this.#clock.monotonicMs(), epochMs: Math.floor(this.#clock.epochUs() / 1_000) };
  }
}

interface SeenDescriptor {
  readonly index: number;
  readonly descriptor: PreparedDescriptor;
  readonly entries: readonly DescriptorEntry[];
  readonly status: DescriptorVerdict & { readonly isOver: boolean };
}

function seenDescriptor(
  { prepared, query, verdict }: AnsweredCall,
  index: number,
): SeenDescriptor | undefined {
  const descriptor = prepared.descriptors[index];
  const entries = query.descriptors[index]?.entries;
  const status = verdict.statuses[index];
  if (descriptor === undefined || entries === undefined || status === undefined) return undefined;
  const { isOver } = status;
  // Not evaluated, so there is nothing to show.
  if (isOver === undefined) return undefined;
  return { index, descriptor, entries, status: { ...status, isOver } };
}

function decidedBy(descriptor: PreparedDescriptor, { prepared, request }: AnsweredCall): string {
  if (descriptor.kind !== "limited") return "policy";
  if (request.isFromMemory) return "memory";
  if (request.isFallback !== true) return "store";
  return prepared.asks[descriptor.firstAsk]?.limit.onStoreFailure ?? "local";
}
