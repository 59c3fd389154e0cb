import { GenerationalMap } from "../collections/generational-map.js";
import { power } from "../collections/power.js";
import type { Usage } from "./usage.js";

/** A count that is learned. Input tokens include cached and cache-written ones. */
export type LearnedCount =
  | "inputTokens"
  | "outputTokens"
  | "responseBytes"
  | "durationMs"
  | "customUnits";

/** Minimum number of calls for a quantile or ratio. */
const learnedCallsMin = 10;

/** Maximum number of callers whose usage is remembered. */
const learnedCallersMax = 20_000;

/** Maximum number of pairs of a service and a model whose usage is remembered. */
const learnedModelsMax = 1_000;

/** Tokens per byte before anything is learned: the ratio of English text. */
const defaultTokensPerByte = 0.25;

/** Number of calls after which all earlier calls count half. */
const agedAfterCount = 1_024;

/** Number of buckets per factor of two. */
const bucketsPerDoubling = 4;

/** The first bucket is for 0, the last for 2^40 and more. */
const bucketCount = 2 + 40 * bucketsPerDoubling;

/** A histogram of one count of recent calls, in exponential buckets. */
class CountSketch {
  /** By bucket, up to the highest used one: most callers' calls are alike. */
  readonly #counts: number[] = [];
  #count = 0;
  #total = 0;
  /** The last requested quantile, until another call is added. -1: none. */
  #askedRatio = -1;
  #askedValue = 0;

  /** Number of calls that were ever added. */
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
    this.#askedRatio = -1;
  }

  /** Returns a quantile, rounded up to the end of a bucket: by at most 19 %. */
  quantile(ratio: number): number {
    if (this.#askedRatio === ratio) return this.#askedValue;
    const rank = Math.max(1, Math.ceil(ratio * this.#count));
    let seen = 0;
    let index = 0;
    for (; index < bucketCount - 1; index += 1) {
      seen += this.#counts[index] ?? 0;
      if (seen >= rank) break;
    }
    this.#askedRatio = ratio;
    this.#askedValue = index === 0 ? 0 : Math.ceil(power(2, index / bucketsPerDoubling));
    return this.#askedValue;
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

/** The ratio of one count to another in recent calls. */
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

  /** Undefined if there are too few calls. */
  get value(): number | undefined {
    return this.#calls < learnedCallsMin ? undefined : this.#of / this.#over;
  }
}

/** The usage of calls of one kind. A sketch is created when its count is first seen. */
class CallSketches {
  readonly #byCount = new Map<LearnedCount, CountSketch>();
  readonly inputPerByte = new LearnedRatio();
  readonly outputPerByte = new LearnedRatio();

  add(usage: Usage, requestBytes: number | undefined, wanted: ReadonlySet<LearnedCount>): void {
    const inputTokens = allInputTokens(usage);
    const { outputTokens, responseBytes } = usage;
    for (const count of wanted) {
      const value = count === "inputTokens" ? inputTokens : usage[count];
      // Input tokens are estimated by the size of the request if that is known.
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

/** The caller and the model of a call. Both texts also include the service. */
export interface CallKind {
  /** The call's account with the most parts, and the model. */
  readonly caller: string;
  readonly model: string;
}

/** A call that has ended. */
interface UsedCall {
  readonly usage: Usage;
  readonly requestBytes: number | undefined;
  /** The counts that estimates need. */
  readonly wanted: ReadonlySet<LearnedCount>;
}

/** The learned usage of calls of a kind. */
export interface LearnedCalls {
  /**
   * Returns a quantile of the caller's own calls or, if there are too few, of all callers' calls of
   * the model. Undefined if there are too few of both.
   */
  quantile(count: LearnedCount, ratio: number): number | undefined;
  /** Input tokens per byte of the request. */
  readonly inputPerByte: number;
  /** Output tokens per byte of the response. */
  readonly outputPerByte: number;
  /** Learns from a call of this kind that has ended. Counts that were not reported are ignored. */
  learn(call: UsedCall): void;
}

/**
 * The usage of recent calls, by caller and model, and by model alone. Bounded: if there are too
 * many, those that were not seen for the longest time are forgotten.
 */
export class LearnedUsage {
  readonly #byCaller: Sketches = new GenerationalMap(learnedCallersMax);
  readonly #byModel: Sketches = new GenerationalMap(learnedModelsMax);

  /** Returns the learned usage of calls of a kind. Keep the result for as long as a call runs. */
  of(kind: CallKind): LearnedCalls {
    return new KnownCalls(kind, this.#byCaller, this.#byModel);
  }
}

/** Prefers a caller's own calls to those of all callers of the model. */
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

/** Returns the sketches of a key. If there are too many, undefined for most unknown keys. */
function sketchesOf(map: Sketches, key: string): CallSketches | undefined {
  const known = map.get(key);
  if (known !== undefined || !map.wantsMore()) return known;
  const fresh = new CallSketches();
  map.set(key, fresh);
  return fresh;
}

/** Returns all input tokens. Undefined if none were reported. */
function allInputTokens(usage: Usage): number | undefined {
  const { inputTokens, cachedTokens, cacheWriteTokens } = usage;
  if (inputTokens === undefined && cachedTokens === undefined && cacheWriteTokens === undefined)
    return undefined;
  return (inputTokens ?? 0) + (cachedTokens ?? 0) + (cacheWriteTokens ?? 0);
}
