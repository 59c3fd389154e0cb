import { type OptionRow, type ParsedOption, secretOption } from "./option.js";

/** Valid names of a region: a label of metrics, short enough for people to read at a glance. */
export const regionName = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/** Rule for the name of a region. */
export const regionNameRule =
  "a region's name: lower-case letters, digits and dashes, at most 32 characters";

const regionOption: OptionRow<string | undefined> = {
  env: "HEADGATE_REGION",
  valueName: "NAME",
  defaultValue: undefined,
  docs:
    "The region of this replica, one of the names in HEADGATE_REGION_STORES. Needed for limits " +
    "with `spread: global`.",
  parse: (text: string): ParsedOption<string | undefined> => {
    if (text === "") return { kind: "value", value: undefined };
    if (regionName.test(text)) return { kind: "value", value: text };
    return { kind: "problem", message: `must be ${regionNameRule}` };
  },
};

/** The regions that share limits with `spread: global`. */
export const regionOptionRows = {
  region: regionOption,
  regionStores: secretOption({
    env: "HEADGATE_REGION_STORES",
    valueName: "LIST",
    docs:
      "The Redis of every region, this one's too, as `name=url` with blanks or line breaks " +
      "between, the same text in every region. URLs are written as in REDIS_URL; REDIS_TYPE, " +
      "REDIS_TLS and the REDIS_TLS_ files hold for all of them, and REDIS_AUTH for those without " +
      "a password of their own. This replica keeps limits at REDIS_URL, and borrows from the " +
      "others. CACHE_KEY_PREFIX must be the same in every region.",
  }),
} as const;

/** Returns the entries of a text of HEADGATE_REGION_STORES. */
export function regionEntries(text: string): readonly string[] {
  return text.split(/\s+/).filter((entry) => entry !== "");
}

/** Counts the regions in a text of HEADGATE_REGION_STORES, valid or not. 1: none. */
export function countRegions(regionStores: string): number {
  return Math.max(1, regionEntries(regionStores).length);
}
