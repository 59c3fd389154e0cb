import { type DifferenceRow, joined } from "./difference-row.js";
import { serviceDifferenceRows } from "./service-differences.js";

/** Differences in what a file means: what the report of `headgate check --ratelimit` is made of. */
const fileDifferenceRows = {
  "smooth-limits": {
    kind: "different",
    reference: joined(
      "Counts in windows from one full second, minute, hour or day to the next: up to twice",
      "the limit around an edge, and nothing more until the next one.",
    ),
    headgate: joined(
      "Gives what was used back evenly (GCRA): never more than the limit at once, and as many",
      "again over each unit. A limit of 1,000 a day can let 1,999 pass on its first day.",
    ),
    choice: joined(
      "`HEADGATE_ALGORITHM=fixed_window`; or `algorithm: fixed_window` on the limit, in a",
      "`kind: Policy`",
    ),
  },
  "store-failure": {
    kind: "different",
    reference:
      "Answers with an error while Redis is away, so that Envoy's `failure_mode_deny` decides.",
    headgate: joined(
      "Goes on limiting: each replica lets its share of the limit pass. Looser than",
      "`failure_mode_deny: true`, stricter than `false`.",
    ),
    choice: joined(
      "`HEADGATE_ON_STORE_FAILURE=error`; or `on_store_failure: error` on the limit or the",
      "domain, in a `kind: Policy`",
    ),
  },
  "denied-hits": {
    kind: "better",
    reference:
      "Counts denied requests too: one that a limit denies still uses up its other limits.",
    headgate: "Counts a request against all of its limits when it passes, and else against none.",
    choice: "`HEADGATE_CHARGE_DENIED=true`",
  },
  "later-costs": {
    kind: "different",
    reference: joined(
      "Adds costs that come after the response to the window's count, however large, and",
      "forgets all of it where the window ends.",
    ),
    headgate: joined(
      "Adds them too, once a request with `hits_addend: 0` has met the rule: at most up to twice",
      "the limit, and what is above the limit is given back at the limit's rate.",
    ),
    choice: "`HEADGATE_ALGORITHM=fixed_window`; or `charge: settle`, in a `kind: Policy`",
  },
  "retry-time": {
    kind: "better",
    reference: joined(
      "Tells callers to wait for the end of the window: all of them come back at the same",
      "moment.",
    ),
    headgate: joined(
      "Tells a denied caller when its own request will pass, and one that passed when all of",
      "the limit is free again.",
    ),
  },
  "carried-limits": {
    kind: "different",
    reference: joined(
      "Counts hits under all limits that requests carry for one descriptor and unit in one",
      "counter, denied ones too.",
    ),
    headgate: joined(
      "Counts each size by itself, beginning with what the one carried last had in use: a raise",
      "holds at once and counts what was used, and sizes that alternate each keep their promise.",
    ),
    choice: "`HEADGATE_ALGORITHM=fixed_window` (one counter)",
  },
  "key-and-value": {
    kind: "better",
    reference: joined(
      "Joins key and value by `_`: `a` with `b_c` and `a_b` with `c` are one descriptor,",
      "meet one limit and share one counter; both in one list are refused.",
    ),
    headgate: "Compares, keeps and counts them apart.",
  },
  "key-patterns": {
    kind: "different",
    reference: joined(
      "Compares a pattern with key and value joined by `_`: `key: a*z` matches values that end",
      "in z, and a value's pattern may match a longer key.",
    ),
    headgate: joined(
      "Compares a key's pattern with the key and a value's with the value; a pattern in a key",
      "alone matches any value. `key: a*` means the same in both.",
    ),
  },
  "kept-metadata": {
    kind: "better",
    reference: "Loses a rule's `metadata` where `detailed_metric` or `value_to_metric` renames it.",
    headgate: "Keeps it.",
  },
  "named-refusals": {
    kind: "better",
    reference: "Says nothing of the rule that refused a request.",
    headgate: joined(
      "Names it in the response's dynamic metadata, for Envoy's access log; a `kind: Policy`",
      "may say otherwise (`tellRule`).",
    ),
  },
  "bounded-keys": {
    kind: "better",
    reference: "Keeps a counter for every value that callers send, however many they invent.",
    headgate: joined(
      "Takes so many new values of a rule a second (`HEADGATE_NEW_KEYS_PER_SECOND_MAX`); those",
      "beyond share one counter.",
    ),
  },
  "calendar-time": {
    kind: "better",
    reference: "Has months of 30 days, years of 365 and weeks from Thursday, all in UTC.",
    headgate: joined(
      "Has the same lengths, and true calendars where they are asked for (`time_zone` in a",
      "`kind: Policy`).",
    ),
  },
  "misplaced-names": {
    kind: "stricter",
    reference: "Ignores a name it knows in a place where it means nothing (`unit` beside `key`).",
    headgate: "Refuses it, like any other unknown name.",
  },
  "lost-text": {
    kind: "stricter",
    reference:
      "Takes the last of a name that stands twice, and the first of several YAML documents.",
    headgate: "Refuses both.",
  },
  "doubtful-numbers": {
    kind: "stricter",
    reference: "Reads `010` as 8, and takes `1_000` and `0b11`.",
    headgate: "Takes plain digits and hexadecimal numbers.",
  },
  "limit-names": {
    kind: "stricter",
    reference: "Takes any text as a name; Envoy writes it into `x-ratelimit-limit` as it is.",
    headgate:
      'Refuses names that would break the header: `"`, `\\`, `,`, `;`, `|`, other than ASCII.',
  },
  "lost-metadata-numbers": {
    kind: "stricter",
    reference: "Rounds whole numbers above 2^53 in `metadata`, and merges `<<` there.",
    headgate: "Refuses both.",
  },
  "ignored-unit": {
    kind: "stricter",
    reference: "Takes a unit that does not exist beside `unlimited: true`.",
    headgate: "Refuses it.",
  },
  bounds: {
    kind: "stricter",
    reference: "Reads files of any size and depth.",
    headgate: joined(
      "Has bounds, far above what is in use: 100,000 descriptors, 32 levels, 1,000 patterns",
      "of a key, 4 MB a file.",
    ),
  },
} as const satisfies Record<string, DifferenceRow>;

/**
 * Every known difference, those that matter most first: a page of docs/reference. An id keeps its
 * meaning, and for each there is a test that begins with it.
 */
export const differenceRows = { ...fileDifferenceRows, ...serviceDifferenceRows } as const;

/** A row's name. */
export type DifferenceId = keyof typeof differenceRows;
