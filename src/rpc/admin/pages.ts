import { AdminFailure } from "./failures.js";

/** Maximum number of entries of one page. */
const pageEntriesMax = 1_000;

/** Default number of entries of one page. */
const pageEntriesDefault = 100;

/** Maximum length of a page token, in UTF-16 units. */
export const pageTokenCharsMax = 1_000;

/** The bounds of a page's size. */
export const pageRule = { max: pageEntriesMax, defaultValue: pageEntriesDefault } as const;

/**
 * Reads a page token: a text for the place where the next page begins. Undefined without a token.
 *
 * @throws AdminFailure invalid for a token that no page has returned
 */
export function readPageToken(token: string): string | undefined {
  if (token === "") return undefined;
  if (token.length <= pageTokenCharsMax && /^p[0-9A-Za-z._:-]+$/.test(token)) return token.slice(1);
  throw badToken();
}

/** Returns a page token. A place consists of letters, digits, `.`, `_`, `:` and `-`. */
export function pageToken(place: string): string {
  return `p${place}`;
}

/** Returns a page token for a place in a list that only this version of the policy has. */
export function versionedToken(place: number, policyVersion: string): string {
  return pageToken(`${place}.${tokenTextOf(policyVersion)}`);
}

/**
 * Returns where the next page begins in a list of the policy. 0 without a token.
 *
 * @throws AdminFailure invalid for a token that no page has returned, or one of another policy,
 *   where the place would be that of another entry
 */
export function readVersionedToken(token: string, policyVersion: string): number {
  const text = readPageToken(token);
  if (text === undefined) return 0;
  const [digits = "", of] = text.split(".");
  if (!/^\d{1,9}$/.test(digits)) throw badToken();
  if (of === tokenTextOf(policyVersion)) return Number(digits);
  throw new AdminFailure("invalid", "page_token: the policy has changed; start again");
}

/** Returns the characters of a version that a token may contain. */
function tokenTextOf(policyVersion: string): string {
  return policyVersion.replace(/[^0-9A-Za-z]/g, "");
}

/** Returns the failure for an invalid token. */
export function badToken(): AdminFailure {
  return new AdminFailure("invalid", "page_token: it is not a token of the previous page");
}

/**
 * Returns the texts that follow `after` in the order of their code units, without sorting all of
 * them.
 *
 * @param after undefined: from the beginning
 */
export function nextOf(
  texts: Iterable<string>,
  after: string | undefined,
  countMax: number,
): readonly string[] {
  const found: string[] = [];
  for (const text of texts) {
    if (after !== undefined && text <= after) continue;
    const last = found.at(-1);
    if (found.length >= countMax && last !== undefined && text >= last) continue;
    found.splice(placeOf(found, text), 0, text);
    if (found.length > countMax) found.pop();
  }
  return found;
}

/** Returns the position of a text among sorted ones. */
function placeOf(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? "") < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns a page token with a cursor of the store, which may be any text. Empty at the end.
 *
 * @param place the list that the cursor belongs to; letters, digits, `-` and `.`
 */
export function cursorToken(place: string, cursor: string): string {
  const isEnd = cursor === "" && place === "";
  return isEnd ? "" : pageToken(`${place}_${Buffer.from(cursor).toString("hex")}`);
}

/**
 * Reads a token of `cursorToken`. Both texts are empty without one.
 *
 * @throws AdminFailure invalid for a token that no page has returned
 */
export function readCursor(token: string): { readonly place: string; readonly cursor: string } {
  const text = readPageToken(token);
  if (text === undefined) return { place: "", cursor: "" };
  const [, place, hex] = /^([0-9A-Za-z.-]*)_((?:[0-9a-f]{2})*)$/.exec(text) ?? [];
  if (place === undefined || hex === undefined) throw badToken();
  return { place, cursor: Buffer.from(hex, "hex").toString() };
}
