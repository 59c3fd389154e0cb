import { GenerationalMap } from "../collections/generational-map.js";
import { power } from "../collections/power.js";
import type { Usage } from "./usage.js";

/** A count that is learned. Input tokens are all of them, whether cached or not. */
export type LearnedCount =
  | "inputTokens"
  | "outputTokens"
  | "responseBytes"
  | "durationMs"
  | "customUnits";

/** Calls from which on quantiles are believed. */
const learnedCallsMin = 10;

/** Callers of whom is remembered what their calls used. */
const learnedCallersMax = 20_000;

/** Services with a model of which the same is remembered. */
const learnedModelsMax = 1_000;

/** Tokens of a byte before anything is learned: what English text has. */
const defaultTokensPerByte = 0.25;

/** Calls after which all before count half. */
const agedAfterCount = 1_024;

/** Buckets of a factor of two. */
const bucketsPerDoubling = 4;

/** The first is for 0, the last for 2^40 and more. */
const bucketCount = 2 + 40 * bucketsPerDoubling;

/** One count of recent calls, in buckets that grow evenly. */
class CountSketch {
  /** By bucket, up to the highest that is used: most callers' calls are alike. */
  readonly #counts: number[] = [];
  #count = 0;
  #total = 0;
  #asked: { readonly ratio: number; readonly value: number } | undefined;

  /** Calls that were ever added. */
  get total(): number {
    return this.#total;
  }

  add(value: number): void {
    if (this.#count >= agedAfterCount) this.#age();
    const place = value < 1 ? 0 : 1 + Math.floor(Math.log2(value) * bucketsPerDoubling);
    const index = Math.min(bucketCount - 1, place);
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
    this.#total += 1;
    this.#asked = undefined;
  }

  /** What a share of calls does not pass, rounded up to the end of a bucket: 19 % at most. */
  quantile(ratio: number): number {
    if (this.#asked?.ratio === ratio) return this.#asked.value;
    const rank = Math.max(1, Math.ceil(ratio * this.#count));
    let seen = 0;
    let index = 0;
    for (; index < bucketCount - 1; index += 1) {
      seen += this.#counts[index] ?? 0;
      if (seen >= rank) break;
    }
    const value = index === 0 ? 0 : Math.ceil(power(2, index / bucketsPerDoubling));
    this.#asked = { ratio, value };
    return value;
  }

  #age(): void {
    this.#count = 0;
    for (let i = 0; i < this.#counts.length; i += 1) {
      const halved = (this.#counts[i] ?? 0) >> 1;
      this.#counts[i] = halved;
      this.#count += halved;
    }
  }
}

/** How many of one thing come with another, in recent calls. */
class LearnedRatio {
  #of = 0;
  #over = 0;
  #calls = 0;

  add(of: number, over: number): void {
    if (over <= 0) return;
    const kept = 1 - 1 / agedAfterCount;
    this.#of = this.#of * kept + of;
    this.#over = this.#over * kept + over;
    this.#calls += 1;
  }

  /** Undefined after too few calls. */
  get value(): number | undefined {
    return this.#calls < learnedCallsMin ? undefined : this.#of / this.#over;
  }
}

/** What calls of one kind used. Sketches are made when their counts are first seen. */
class CallSketches {
  readonly #byCount = new Map<LearnedCount, CountSketch>();
  readonly inputPerByte = new LearnedRatio();
  readonly outputPerByte = new LearnedRatio();

  add(usage: Usage, requestBytes: number | undefined, wanted: ReadonlySet<LearnedCount>): void {
    const inputTokens = allInputTokens(usage);
    const { outputTokens, responseBytes } = usage;
    for (const count of wanted) {
      const value = count === "inputTokens" ? inputTokens : usage[count];
      // Input tokens are estimated by the size of the request where that is known.
      if (value === undefined || (count === "inputTokens" && requestBytes !== undefined)) continue;
      const sketch = this.#byCount.get(count) ?? new CountSketch();
      this.#byCount.set(count, sketch);
      sketch.add(value);
    }
    if (inputTokens !== undefined) this.inputPerByte.add(inputTokens, requestBytes ?? 0);
    if (outputTokens !== undefined) this.outputPerByte.add(outputTokens, responseBytes ?? 0);
  }

  quantile(count: LearnedCount, ratio: number): number | undefined {
    const sketch = this.#byCount.get(count);
    return sketch === undefined || sketch.total < learnedCallsMin
      ? undefined
      : sketch.quantile(ratio);
  }
}

/** Who made a call and of what model; both texts name the service, too. */
export interface CallKind {
  /** The call's account with the most parts, and the model. */
  readonly caller: string;
  readonly model: string;
}

/** A call that has ended. */
interface UsedCall {
  readonly usage: Usage;
  readonly requestBytes: number | undefined;
  /** What estimates need. */
  readonly wanted: ReadonlySet<LearnedCount>;
}

/** What is known of calls of a kind. */
export interface LearnedCalls {
  /**
   * What a share of them does not pass, by the caller's own calls, or those of all callers of the
   * model while there are few; undefined while there are few of both.
   */
  quantile(count: LearnedCount, ratio: number): number | undefined;
  /** Input tokens for a byte of the request. */
  readonly inputPerByte: number;
  /** Output tokens for a byte of the response. */
  readonly outputPerByte: number;
  /** A call of this kind has ended. Counts that nobody reported teach nothing. */
  learn(call: UsedCall): void;
}

/**
 * What recent calls used, by caller and model, and by model alone. Bounded: of too many, those that
 * were not seen for longest are forgotten.
 */
export class LearnedUsage {
  readonly #byCaller: Sketches = new GenerationalMap(learnedCallersMax);
  readonly #byModel: Sketches = new GenerationalMap(learnedModelsMax);

  /** What is known of calls of a kind. To be kept for as long as a call runs. */
  of(kind: CallKind): LearnedCalls {
    return new KnownCalls(kind, this.#byCaller, this.#byModel);
  }
}

/** A caller's own calls before those of all callers of the model. */
class KnownCalls implements LearnedCalls {
  readonly #kind: CallKind;
  readonly #byCaller: Sketches;
  readonly #byModel: Sketches;
  #own: CallSketches | undefined;
  #all: CallSketches | undefined;

  constructor(kind: CallKind, byCaller: Sketches, byModel: Sketches) {
    this.#kind = kind;
    this.#byCaller = byCaller;
    this.#byModel = byModel;
    this.#own = byCaller.get(kind.caller);
    this.#all = byModel.get(kind.model);
  }

  learn({ usage, requestBytes, wanted }: UsedCall): void {
    this.#own ??= sketchesOf(this.#byCaller, this.#kind.caller);
    this.#all ??= sketchesOf(this.#byModel, this.#kind.model);
    this.#own?.add(usage, requestBytes, wanted);
    this.#all?.add(usage, requestBytes, wanted);
  }

  quantile(count: LearnedCount, ratio: number): number | undefined {
    return this.#own?.quantile(count, ratio) ?? this.#all?.quantile(count, ratio);
  }

  get inputPerByte(): number {
    const ratio = this.#own?.inputPerByte.value ?? this.#all?.inputPerByte.value;
    return ratio ?? defaultTokensPerByte;
  }

  get outputPerByte(): number {
    const ratio = this.#own?.outputPerByte.value ?? this.#all?.outputPerByte.value;
    return ratio ?? defaultTokensPerByte;
  }
}

type Sketches = GenerationalMap<string, CallSketches>;

/** Undefined for most callers that are not known, while there are too many. */
function sketchesOf(map: Sketches, key: string): CallSketches | undefined {
  const known = map.get(key);
  if (known !== undefined || !map.wantsMore()) return known;
  const fresh = new CallSketches();
  map.set(key, fresh);
  return fresh;
}

/** Undefined where nobody reported any. */
function allInputTokens(usage: Usage): number | undefined {
  const { inputTokens, cachedTokens, cacheWriteTokens } = usage;
  if (inputTokens === undefined && cachedTokens === undefined && cacheWriteTokens === undefined)
    return undefined;
  return (inputTokens ?? 0) + (cachedTokens ?? 0) + (cacheWriteTokens ?? 0);
}
