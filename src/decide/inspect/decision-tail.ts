import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { charCountOf, type DescriptorEntry } from "../../core/limits/key.js";
import type { PreparedDescriptor, PreparedQuery } from "../rate-limit/prepared-query.js";
import { isSelected, type RuleSelector } from "./seen-key.js";

/** Maximum number of followers at the same time. */
export const tailFollowersMax = 16;

/** Maximum number of samples that wait for one follower. Further ones are dropped. */
export const tailRingMax = 1_000;

/** Maximum size of these, in UTF-16 units of keys and values: 8 MiB for all followers. */
export const tailRingCharsMax = 262_144;

/** Calls that all followers together may sample per second: about 1 % of a core. */
export const tailLooksPerSecondMax = 2_000;

/** Maximum size of a shown descriptor, in UTF-16 units of all its keys and values. */
export const tailCharsMax = 2_048;

/** Number of parts of a second over which these samples are spread. */
const partsPerSecond = 10;
const partMs = 1_000 / partsPerSecond;

/** Selects the decisions that a follower sees. */
export interface TailFilter extends RuleSelector {
  readonly isDeniedOnly: boolean;
  /** Entries that a descriptor must have. */
  readonly having: readonly DescriptorEntry[];
  /** Fraction of the decisions to sample, above 0 to 1. */
  readonly sampleRatio: number;
  /** Maximum number of samples per second. The rest is dropped, and counted. */
  readonly perSecondMax: number;
}

/** One descriptor of a decision. */
export interface DecisionSample {
  readonly epochMs: number;
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  /** Undefined: no rule matched it. */
  readonly ruleLabel: string | undefined;
  readonly isDenied: boolean;
  readonly hits: number;
  readonly remainingHits: number;
  /** `store`, `memory`, a failure mode, or `policy` if nothing had to be checked. */
  readonly decidedBy: string;
}

/** A follower of decisions, with a bounded buffer. */
export interface TailFollower {
  /** Takes the samples since the last call, oldest first, and the number of dropped ones. */
  take(): { readonly samples: readonly DecisionSample[]; readonly droppedCount: number };
  /** Stops following. */
  stop(): void;
}

/**
 * Live decisions for followers. Without followers, a decision costs one comparison. It never waits:
 * what comes faster than it may be sampled or is taken is dropped and counted. What is dropped
 * unseen may not have matched the filter.
 */
export class DecisionTail {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #random: Random;
  readonly #followers = new Set<Follower>();
  #isFollowed = false;
  #chosen: Follower[] = [];
  #looksLeft = 0;
  #part = 0;
  #cancel: Cancel | undefined;

  constructor({
    clock,
    random,
  }: { readonly clock: Pick<Clock, "schedule">; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Whether there are followers. Read for every call, and therefore only a field. */
  get isFollowed(): boolean {
    return this.#isFollowed;
  }

  /** Undefined: there are already `tailFollowersMax` followers. */
  follow(filter: TailFilter): TailFollower | undefined {
    if (this.#followers.size >= tailFollowersMax) return undefined;
    const follower = new Follower(filter, this.#random, () => this.#leave(follower));
    this.#followers.add(follower);
    this.#isFollowed = true;
    if (this.#cancel === undefined) this.#giveOut();
    return follower;
  }

  /** Whether any follower wants this call. Called once for each call while there are followers. */
  wants({ descriptors }: PreparedQuery): boolean {
    let isWanted = false;
    // Left over if the previous call failed before `chosen` was called.
    if (this.#chosen.length > 0) this.#chosen = [];
    for (const follower of this.#followers) {
      if (!follower.chooses(descriptors)) continue;
      if (this.#looksLeft === 0) follower.drop();
      else {
        this.#chosen.push(follower);
        isWanted = true;
      }
    }
    if (isWanted) this.#looksLeft -= 1;
    return isWanted;
  }

  /** Takes the followers that wanted the last call passed to `wants`. */
  chosen(): readonly TailFollower[] {
    const { length } = this.#chosen;
    if (length === 0) return nobody;
    const chosen = this.#chosen;
    this.#chosen = [];
    return chosen;
  }

  /** Shows a descriptor of a decision to the followers that chose its call. */
  show(chosen: readonly TailFollower[], sample: DecisionSample): void {
    for (const follower of this.#followers) {
      if (chosen.includes(follower)) follower.show(sample);
    }
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    this.#isFollowed = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #giveOut(): void {
    this.#looksLeft = tailLooksPerSecondMax / partsPerSecond;
    this.#part = (this.#part + 1) % partsPerSecond;
    if (this.#part === 0) for (const follower of this.#followers) follower.beginSecond();
    this.#cancel = this.#clock.schedule(partMs, () => this.#giveOut());
  }
}

const nobody: readonly TailFollower[] = [];

class Follower implements TailFollower {
  readonly #filter: TailFilter;
  readonly #random: Random;
  readonly #leave: () => void;
  #samples: DecisionSample[] = [];
  #charCount = 0;
  #droppedCount = 0;
  /** Calls until the next one is sampled. */
  #left: number;
  #leftThisSecond: number;

  constructor(filter: TailFilter, random: Random, leave: () => void) {
    this.#filter = filter;
    this.#random = random;
    this.#leave = leave;
    this.#left = this.#nextGap();
    this.#leftThisSecond = filter.perSecondMax;
  }

  take(): { readonly samples: readonly DecisionSample[]; readonly droppedCount: number } {
    const taken = { samples: this.#samples, droppedCount: this.#droppedCount };
    this.#samples = [];
    this.#charCount = 0;
    this.#droppedCount = 0;
    return taken;
  }

  stop(): void {
    this.#leave();
  }

  beginSecond(): void {
    this.#leftThisSecond = this.#filter.perSecondMax;
  }

  /** Whether a call is in the sample, if its rules match the filter. */
  chooses(descriptors: readonly PreparedDescriptor[]): boolean {
    if (!this.#mayConcern(descriptors)) return false;
    this.#left -= 1;
    if (this.#left > 0) return false;
    this.#left = this.#nextGap();
    return true;
  }

  show(sample: DecisionSample): void {
    if (!this.#wants(sample)) return;
    const charCount = charCountOf(sample.entries);
    const isFull =
      this.#samples.length >= tailRingMax || this.#charCount + charCount > tailRingCharsMax;
    if (this.#leftThisSecond === 0 || isFull) {
      this.#droppedCount += 1;
      return;
    }
    this.#leftThisSecond -= 1;
    this.#charCount += charCount;
    this.#samples.push(sample);
  }

  drop(): void {
    this.#droppedCount += 1;
  }

  #mayConcern(descriptors: readonly PreparedDescriptor[]): boolean {
    const { domains, ruleLabel } = this.#filter;
    if (domains === undefined && ruleLabel === undefined) return true;
    return descriptors.some((descriptor) => {
      const rule = "rule" in descriptor ? descriptor.rule : undefined;
      // Without a matching rule, the domain is not known yet.
      return rule === undefined ? ruleLabel === undefined : isSelected(rule, this.#filter);
    });
  }

  #wants({ domain, ruleLabel, isDenied, entries }: DecisionSample): boolean {
    const { having, isDeniedOnly, domains, ruleLabel: wanted } = this.#filter;
    if (isDeniedOnly && !isDenied) return false;
    if (domains !== undefined && !domains.includes(domain)) return false;
    if (wanted !== undefined && wanted !== ruleLabel) return false;
    return having.every(({ key, value }) =>
      entries.some((entry) => entry.key === key && entry.value === value),
    );
  }

  /** Uniform, so that the ratio holds on average and does not align with regular callers. */
  #nextGap(): number {
    const { sampleRatio } = this.#filter;
    if (sampleRatio >= 1) return 1;
    return Math.max(1, Math.round(this.#random.next() * (2 / sampleRatio - 1) + 0.5));
  }
}
