import { Noted, type Tree, type TreeMap } from "./document.js";
import { isTreeList } from "./plain-tree.js";

/** A value without the comments right before it. */
export function unnoted(tree: Tree): Exclude<Tree, Noted> {
  let at = tree;
  while (at instanceof Noted) at = at.value;
  return at;
}

/** A value as a map; undefined where it is none. */
export function asMap(tree: Tree | undefined): TreeMap | undefined {
  if (tree === undefined) return undefined;
  const plain = unnoted(tree);
  return typeof plain === "object" && !isTreeList(plain) ? plain : undefined;
}

/** What a map holds under a name, without comments before it. */
export function memberOf(tree: Tree, name: string): Exclude<Tree, Noted> | undefined {
  const member = asMap(tree)?.[name];
  return member === undefined ? undefined : unnoted(member);
}

/** A list's items; none where it is no list. */
export function itemsOf(tree: Tree | undefined): readonly Tree[] {
  if (tree === undefined) return [];
  const plain = unnoted(tree);
  return isTreeList(plain) ? plain : [];
}

/** A map with one of its values replaced; the comments before it stay. */
export function withMember(tree: Tree, name: string, value: Tree): Tree {
  if (tree instanceof Noted) return new Noted(tree.comment, withMember(tree.value, name, value));
  const map = asMap(tree);
  return map === undefined ? tree : { ...map, [name]: value };
}
