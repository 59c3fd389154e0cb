import type { JsonPath } from "./check-problem.js";
import type { Tree, TreeMap } from "./document.js";
import {
  isPlainList,
  isPlainMap,
  type PlainMap,
  type PlainValue,
  plainTree,
} from "./plain-tree.js";
import { asMap, itemsOf } from "./tree-members.js";

/** How settings of one kind of object are merged into those of a user. */
export interface MergeStyle {
  /**
   * Names of settings that are replaced as a whole, because their parts exclude each other or only
   * have a meaning together. Maps with different values of `type` are treated the same way.
   */
  readonly wholes: readonly string[];
  /**
   * Names of lists that are appended to. An item with the same value under `sameBy` is merged into
   * the existing one. If `sameBy` is undefined, an equal item is not added again.
   */
  readonly lists?: Readonly<Record<string, string | undefined>>;
}

/** A setting with different values on both sides. The user's value stays. */
export interface MergeConflict {
  readonly path: JsonPath;
  readonly theirs: PlainValue;
  readonly ours: PlainValue;
}

/** Where values are merged, and where conflicts are collected. */
export interface MergePlace {
  readonly path: JsonPath;
  readonly style: MergeStyle;
  readonly conflicts: MergeConflict[];
}

/** Merges a map into the user's: adds names that it lacks, after the names that it has. */
export function mergeMaps(theirs: PlainMap, ours: TreeMap, place: MergePlace): TreeMap {
  const merged = new Map<string, Tree>(Object.entries(theirs));
  for (const [name, tree] of Object.entries(ours)) {
    if (tree === undefined) continue;
    const own = Object.hasOwn(theirs, name) ? theirs[name] : undefined;
    const below = { ...place, path: [...place.path, name] };
    merged.set(name, own === undefined ? tree : mergeValues(own, tree, below));
  }
  return Object.fromEntries(merged);
}

function mergeValues(theirs: PlainValue, ours: Tree, place: MergePlace): Tree {
  const { path, style, conflicts } = place;
  const name = String(path.at(-1));
  const map = asMap(ours);
  if (isPlainMap(theirs) && map !== undefined && !isWhole(theirs, map, place)) {
    return mergeMaps(theirs, map, place);
  }
  const lists = style.lists ?? {};
  if (isPlainList(theirs) && Object.hasOwn(lists, name)) {
    return mergeLists(theirs, itemsOf(ours), { ...place, sameBy: lists[name] });
  }
  const plain = plainTree(ours);
  if (!isSameValue(theirs, plain)) conflicts.push({ path, theirs, ours: plain });
  return theirs;
}

function isWhole(theirs: PlainMap, ours: TreeMap, { path, style }: MergePlace): boolean {
  if (style.wholes.includes(String(path.at(-1)))) return true;
  const [type, other] = [theirs["type"], ours["type"]];
  return type !== undefined && other !== undefined && !isSameValue(type, plainTree(other));
}

function mergeLists(
  theirs: readonly PlainValue[],
  ours: readonly Tree[],
  { sameBy, ...place }: MergePlace & { readonly sameBy: string | undefined },
): readonly Tree[] {
  const merged: Tree[] = [...theirs];
  for (const item of ours) {
    const index = findItem(theirs, item, sameBy);
    const own = theirs[index];
    if (own === undefined) merged.push(item);
    else merged[index] = mergeValues(own, item, { ...place, path: [...place.path, index] });
  }
  return merged;
}

/** Returns the index of an item in a list, or -1 if it is missing. */
export function findItem(
  list: readonly PlainValue[],
  item: Tree,
  sameBy: string | undefined,
): number {
  const plain = plainTree(item);
  return list.findIndex((one) => {
    if (sameBy === undefined || !isPlainMap(one) || !isPlainMap(plain)) {
      return isSameValue(one, plain);
    }
    const [own, other] = [one[sameBy], plain[sameBy]];
    return own !== undefined && other !== undefined && isSameValue(own, other);
  });
}

/** Reports whether two values mean the same, despite the order of names or form of durations. */
export function isSameValue(one: PlainValue, other: PlainValue): boolean {
  if (isPlainList(one) && isPlainList(other)) {
    return one.length === other.length && one.every((item, at) => isSameAt(item, other[at]));
  }
  if (isPlainMap(one) && isPlainMap(other)) {
    const names = Object.keys(one);
    if (names.length !== Object.keys(other).length) return false;
    return names.every((name) => Object.hasOwn(other, name) && isSameAt(one[name], other[name]));
  }
  if (one === other) return true;
  const ms = durationMs(one);
  return ms !== undefined && ms === durationMs(other);
}

function isSameAt(one: PlainValue | undefined, other: PlainValue | undefined): boolean {
  return one !== undefined && other !== undefined && isSameValue(one, other);
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Parses a duration as Istio and Envoy Gateway write it (`1m30s`), to milliseconds. */
function durationMs(value: PlainValue): number | undefined {
  if (typeof value !== "string" || !/^(?:\d{1,9}(?:\.\d{1,9})?(?:h|ms|m|s)){1,4}$/.test(value)) {
    return undefined;
  }
  const parts = [...value.matchAll(/([\d.]+)(h|ms|m|s)/g)];
  const ms = parts.reduce((sum, [, count, unit = ""]) => {
    return sum + Number(count) * (unitMs[unit] ?? 0);
  }, 0);
  return Math.round(ms);
}
