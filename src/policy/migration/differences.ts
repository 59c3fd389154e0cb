import { type DifferenceRow, joined } from "./difference-row.js";
import { serviceDifferenceRows } from "./service-differences.js";

/** Differences in the meaning of a file: the content of `headgate check --ratelimit`'s report. */
const fileDifferenceRows = {
  "smooth-limits": {
    kind: "different",
    reference: joined(
      "Counts in windows of one second, minute, hour or day. Around a window's edge, up",
      "to twice the limit passes. After that, nothing passes until the next window.",
    ),
    headgate: joined(
      "Replenishes evenly (GCRA): never more than the limit at once, and as many again",
      "over each unit. On its first day, a limit of 1,000 a day can allow 1,999.",
    ),
    choice: joined(
      "`HEADGATE_ALGORITHM=fixed_window`; or `algorithm: fixed_window` on the limit, in a",
      "`kind: Policy`",
    ),
  },
  "store-failure": {
    kind: "different",
    reference:
      "Returns an error while Redis is unreachable, so that Envoy's " +
      "`failure_mode_deny` decides.",
    headgate: joined(
      "Keeps limiting: each replica allows its share of the limit. This is looser than",
      "`failure_mode_deny: true` and stricter than `false`.",
    ),
    choice: joined(
      "`HEADGATE_ON_STORE_FAILURE=error`; or `on_store_failure: error` on the limit or the",
      "domain, in a `kind: Policy`",
    ),
  },
  "denied-hits": {
    kind: "better",
    reference:
      "Counts denied requests too: a request that one limit denies still uses up " +
      "its other limits.",
    headgate: "Charges a request to all of its limits if it passes, and to none if it is denied.",
    choice: "`HEADGATE_CHARGE_DENIED=true`",
  },
  "later-costs": {
    kind: "different",
    reference: joined(
      "Adds costs reported after the response to the window's count, however large.",
      "Forgets all of it at the end of the window.",
    ),
    headgate: joined(
      "Adds them too, once a request with `hits_addend: 0` has matched the rule, up to",
      "twice the limit. Debt above the limit drains at the limit's rate.",
    ),
    choice: "`HEADGATE_ALGORITHM=fixed_window`; or `charge: settle`, in a `kind: Policy`",
  },
  "retry-time": {
    kind: "better",
    reference: joined(
      "Tells callers to wait until the window ends, so all of them return at the same",
      "moment.",
    ),
    headgate: joined(
      "Tells a denied caller when its own request will fit. Tells an allowed caller when",
      "the whole limit is free again.",
    ),
  },
  "carried-limits": {
    kind: "different",
    reference: joined(
      "Counts hits of all limits that requests carry for one descriptor and unit in one",
      "counter, denied hits included.",
    ),
    headgate: joined(
      "Counts each limit size separately. A new size starts with what the last one had",
      "in use, so a raise takes effect at once. Alternating sizes each keep their own",
      "limit.",
    ),
    choice: "`HEADGATE_ALGORITHM=fixed_window` (one counter)",
  },
  "key-and-value": {
    kind: "better",
    reference: joined(
      "Joins key and value with `_`. `a` with `b_c` and `a_b` with `c` are the same",
      "descriptor and share one limit and counter. A list with both is refused.",
    ),
    headgate: "Keeps key and value apart: these are two descriptors with two counters.",
  },
  "key-patterns": {
    kind: "different",
    reference: joined(
      "Compares a pattern with the joined key and value. `key: a*z` matches values that",
      "end in z, and a value's pattern may match a longer key.",
    ),
    headgate: joined(
      "Compares a key pattern with the key and a value pattern with the value. A pattern",
      "only in the key matches any value. `key: a*` means the same in both.",
    ),
  },
  "kept-metadata": {
    kind: "better",
    reference:
      "Drops a rule's `metadata` if `detailed_metric` or `value_to_metric` renames the rule.",
    headgate: "Keeps it.",
  },
  "named-refusals": {
    kind: "better",
    reference: "Does not report which rule denied a request.",
    headgate: joined(
      "Reports the rule in the response's dynamic metadata, for Envoy's access log. A",
      "`kind: Policy` can change this (`tellRule`).",
    ),
  },
  "bounded-keys": {
    kind: "better",
    reference: "Keeps a counter for every value that callers send, without a bound.",
    headgate: joined(
      "Accepts a bounded number of new values a second for each rule",
      "(`HEADGATE_NEW_KEYS_PER_SECOND_MAX`). Values beyond that share one counter.",
    ),
  },
  "calendar-time": {
    kind: "better",
    reference:
      "Uses months of 30 days, years of 365 days and weeks that start on Thursday, all in UTC.",
    headgate: joined(
      "Uses the same lengths by default, and calendar windows if requested (`time_zone`",
      "in a `kind: Policy`).",
    ),
  },
  "misplaced-names": {
    kind: "stricter",
    reference: "Ignores a known key where it has no effect (`unit` next to `key`).",
    headgate: "Refuses it, like an unknown key.",
  },
  "lost-text": {
    kind: "stricter",
    reference: "Uses the last of duplicate keys, and the first of several YAML documents.",
    headgate: "Refuses both.",
  },
  "doubtful-numbers": {
    kind: "stricter",
    reference: "Reads `010` as 8, and accepts `1_000` and `0b11`.",
    headgate: "Accepts plain decimal and hexadecimal numbers.",
  },
  "limit-names": {
    kind: "stricter",
    reference: "Accepts any text as a name. Envoy copies it into `x-ratelimit-limit` unchanged.",
    headgate:
      'Refuses names that would break the header: `"`, `\\`, `,`, `;`, `|`, and ' +
      "non-ASCII characters.",
  },
  "lost-metadata-numbers": {
    kind: "stricter",
    reference: "Rounds whole numbers above 2^53 in `metadata`, and supports `<<` there.",
    headgate: "Refuses both.",
  },
  "ignored-unit": {
    kind: "stricter",
    reference: "Accepts an unknown unit next to `unlimited: true`.",
    headgate: "Refuses it.",
  },
  bounds: {
    kind: "stricter",
    reference: "Reads files of any size and depth.",
    headgate: joined(
      "Has bounds, far above real use: 100,000 descriptors, 32 levels, 1,000 patterns",
      "for a key, 4 MB for a file.",
    ),
  },
} as const satisfies Record<string, DifferenceRow>;

/**
 * Every known difference, the most important first: a page of docs/reference. An id keeps its
 * meaning, and each has a test whose name begins with it.
 */
export const differenceRows = { ...fileDifferenceRows, ...serviceDifferenceRows } as const;

/** The id of a row. */
export type DifferenceId = keyof typeof differenceRows;
