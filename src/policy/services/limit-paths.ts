import { globMatches, parseGlob } from "../../core/collections/glob.js";
import type { PathStep, Rule } from "../../core/limits/limit.js";
import type { DescriptorPart } from "./descriptor-parts.js";

/** The paths at which one domain has limits, to be asked which descriptors may meet one. */
export class LimitPaths {
  /** By the keys of a path. */
  readonly #byKeys = new Map<string, (readonly PathStep[])[]>();
  /** With a `*` in a key. */
  readonly #patterned: (readonly PathStep[])[] = [];
  readonly #keys = new Set<string>();

  /** Adds a rule's path, where it has a limit or says that there is none. */
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

  /** Keys of all descriptors, also of those without a limit. */
  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /** Whether some request's descriptor of these parts may meet a limit. */
  canMeet(parts: readonly DescriptorPart[]): boolean {
    const paths = this.#byKeys.get(keysText(parts)) ?? [];
    return [...paths, ...this.#patterned].some((path) => mayMeet(path, parts));
  }
}

/** Keys may hold any character, so no separator would do. */
function keysText(steps: readonly { readonly key: string }[]): string {
  return JSON.stringify(steps.map(({ key }) => key));
}

/** Whether some request's descriptor of these parts may end at that path. */
export function mayMeet(path: readonly PathStep[], parts: readonly DescriptorPart[]): boolean {
  if (path.length !== parts.length) return false;
  return path.every(({ key, value }, i) => {
    const part = parts[i];
    if (part === undefined || !globMatches(parseGlob(key), part.key)) return false;
    // What a header or an address may be is not known here.
    if (value === undefined || !("value" in part)) return true;
    return globMatches(parseGlob(value), part.value);
  });
}
