import { globMatches, parseGlob } from "../../core/collections/glob.js";
import type { PathStep, Rule } from "../../core/limits/limit.js";
import type { DescriptorPart } from "./descriptor-parts.js";

/** The paths of one domain that have limits, to test which descriptors may match one. */
export class LimitPaths {
  /** Paths by their keys. */
  readonly #byKeys = new Map<string, (readonly PathStep[])[]>();
  /** Paths with a `*` in a key. */
  readonly #patterned: (readonly PathStep[])[] = [];
  readonly #keys = new Set<string>();

  /** Adds a rule's keys, and its path if the rule has a limit or is unlimited. */
  add({ path, effect }: Rule): void {
    for (const { key } of path) this.#keys.add(key);
    if (effect.kind === "none") return;
    if (path.some(({ key }) => key.includes("*"))) {
      this.#patterned.push(path);
      return;
    }
    const keys = keysText(path);
    const known = this.#byKeys.get(keys);
    if (known === undefined) this.#byKeys.set(keys, [path]);
    else known.push(path);
  }

  /** Keys of all descriptors, including those without a limit. */
  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /** Reports whether a request's descriptor of these parts may match a limit. */
  canMeet(parts: readonly DescriptorPart[]): boolean {
    const paths = this.#byKeys.get(keysText(parts)) ?? [];
    return [...paths, ...this.#patterned].some((path) => mayMeet(path, parts));
  }
}

/** Keys may contain any character, so no separator is safe. */
function keysText(steps: readonly { readonly key: string }[]): string {
  return JSON.stringify(steps.map(({ key }) => key));
}

/** Reports whether a request's descriptor of these parts may end at that path. */
export function mayMeet(path: readonly PathStep[], parts: readonly DescriptorPart[]): boolean {
  if (path.length !== parts.length) return false;
  return path.every(({ key, value }, i) => {
    const part = parts[i];
    if (part === undefined || !globMatches(parseGlob(key), part.key)) return false;
    // The value of a header or an address is unknown here.
    if (value === undefined || !("value" in part)) return true;
    return globMatches(parseGlob(value), part.value);
  });
}
