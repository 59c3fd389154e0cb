import { type FrequentKey, SpaceSaving } from "../../core/collections/space-saving.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { isSelected, type RuleSelector, ruleName, type SeenRule, seenEntries } from "./seen-key.js";

/** Maximum number of rules whose keys are counted in one window: the first ones. */
export const sketchedRulesMax = 128;

/** Maximum number of keys of a rule that are counted at the same time, by calls. */
export const sketchedHitsMax = 128;

/** The same, by denials. */
export const sketchedDenialsMax = 64;

/** Length of a window, in milliseconds. Results cover the running and the previous window. */
export const sketchWindowMs = 300_000;

/** Approximate size of a counted key, without its text, in bytes. */
const countedBytes = 170;

/** A key, and how often it was seen. */
export interface TopKey {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly ruleLabel: string;
  /** Estimated number of calls, and by how much the sketch may overestimate it at most. */
  readonly count: number;
  readonly errorMax: number;
}

/** The most frequent keys of a window. */
interface Window {
  readonly sinceMs: number;
  readonly sinceEpochMs: number;
  readonly rules: Map<string, RuleSketch>;
  /** Size of all keys that are counted in it. */
  keysBytes: number;
}

interface RuleSketch {
  readonly rule: SeenRule;
  readonly hits: SpaceSaving<string>;
  readonly denials: SpaceSaving<string>;
}

/** The time, on both clocks. */
export interface SeenTime {
  readonly nowMs: number;
  readonly epochMs: number;
}

/**
 * Finds the keys of a rule that are asked about, and denied, most often: sketches of constant size,
 * fed by a sample. 128 rules with 192 keys each take 8 MB. Keys may be longer: if they exceed the
 * maximum size, new ones are left out until the window ends.
 */
export class KeySketches {
  #running: Window;
  #before: Window | undefined;
  #leftOutCount = 0;
  readonly #windowBytesMax: number;

  /** @param bytesMax approximate maximum size of keys in both windows, in bytes */
  constructor(time: SeenTime, bytesMax = Number.POSITIVE_INFINITY) {
    this.#windowBytesMax = bytesMax / 2;
    this.#running = createWindow(time);
  }

  /** Number of samples whose rule or key found no room in the window. */
  get leftOutCount(): number {
    return this.#leftOutCount;
  }

  /** @param times how many calls the sample stands for, from 1 */
  count(rule: SeenRule, key: string, seen: SeenTime & { times: number; isOver: boolean }): void {
    this.#turn(seen);
    const sketch = this.#sketchOf(rule);
    if (sketch === undefined) {
      this.#leftOutCount += 1;
      return;
    }
    this.#add(sketch.hits, key, seen.times);
    if (seen.isOver) this.#add(sketch.denials, key, seen.times);
  }

  #add(sketch: SpaceSaving<string>, key: string, times: number): void {
    const window = this.#running;
    const bytes = sketch.has(key) ? 0 : bytesOf(key);
    if (window.keysBytes + bytes > this.#windowBytesMax) {
      this.#leftOutCount += 1;
      return;
    }
    const left = sketch.add(key, times);
    window.keysBytes += bytes - (left === undefined ? 0 : bytesOf(left));
  }

  /** Returns the selected keys, the most frequent first. */
  top(
    selector: RuleSelector,
    asked: SeenTime & { readonly order: "hits" | "denials"; readonly countMax: number },
  ): { readonly keys: readonly TopKey[]; readonly sinceEpochMs: number } {
    this.#turn(asked);
    const { countMax, order } = asked;
    const windows = this.#before === undefined ? [this.#running] : [this.#before, this.#running];
    const found = new Map<string, { rule: SeenRule; keys: Map<string, FrequentKey<string>> }>();
    for (const { rules } of windows) {
      for (const [name, { rule, ...sketches }] of rules) {
        if (!isSelected(rule, selector)) continue;
        const keys = found.get(name)?.keys ?? new Map<string, FrequentKey<string>>();
        found.set(name, { rule, keys });
        for (const one of sketches[order].top(sketchedHitsMax)) addTo(keys, one);
      }
    }
    const all = [...found.values()].flatMap(({ rule, keys }) =>
      [...keys.values()].map((frequent) => ({ rule, frequent })),
    );
    all.sort((one, other) => other.frequent.count - one.frequent.count);
    const keys = all.slice(0, countMax).map(({ rule, frequent }): TopKey => {
      const { key, count, errorMax } = frequent;
      const { domain, label: ruleLabel } = rule;
      return { domain, entries: seenEntries(key), ruleLabel, count, errorMax };
    });
    return { keys, sinceEpochMs: (windows[0] ?? this.#running).sinceEpochMs };
  }

  #sketchOf(rule: SeenRule): RuleSketch | undefined {
    const { rules } = this.#running;
    const name = ruleName(rule);
    const known = rules.get(name);
    if (known !== undefined) return known;
    if (rules.size >= sketchedRulesMax) return undefined;
    const sketch: RuleSketch = {
      rule: { domain: rule.domain, label: rule.label },
      hits: new SpaceSaving(sketchedHitsMax),
      denials: new SpaceSaving(sketchedDenialsMax),
    };
    rules.set(name, sketch);
    return sketch;
  }

  #turn(time: SeenTime): void {
    const agoMs = time.nowMs - this.#running.sinceMs;
    if (agoMs < sketchWindowMs) return;
    // After a long time without calls, the previous window is too old to be reported.
    this.#before = agoMs < 2 * sketchWindowMs ? this.#running : undefined;
    this.#running = createWindow(time);
  }
}

function createWindow({ nowMs, epochMs }: SeenTime): Window {
  return { sinceMs: nowMs, sinceEpochMs: epochMs, rules: new Map(), keysBytes: 0 };
}

function bytesOf(key: string): number {
  return countedBytes + 2 * key.length;
}

function addTo(keys: Map<string, FrequentKey<string>>, one: FrequentKey<string>): void {
  const known = keys.get(one.key);
  const count = one.count + (known?.count ?? 0);
  keys.set(one.key, { key: one.key, count, errorMax: one.errorMax + (known?.errorMax ?? 0) });
}
