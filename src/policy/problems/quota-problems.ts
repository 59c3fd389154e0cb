import type { ProblemRow } from "./problem-row.js";

/** Mistakes in quotas. */
export const quotaProblemRows = {
  HG260: {
    title: "A duration of a quota is not in whole seconds.",
    remedy: "Write whole seconds. Envoy drops fractions, so less than a second would be 0.",
  },
  HG261: {
    title: "Two quotas have the same name.",
    remedy: "Give each quota its own name. Envoys use it to tell buckets apart.",
  },
  HG262: {
    title: "A quota refers to a service that the policy does not define.",
    remedy: "Name a service under `services`, in this or another file of the policy.",
  },
  HG263: {
    title: "A quota refers to a domain that the policy does not define.",
    remedy: "Name a domain under `rateLimits`. If only quotas use it, it needs no descriptors.",
  },
  HG264: {
    title: "No limit can match the buckets of a quota.",
    remedy: "Use the same keys in the same order as a limit's path, or give the quota a `rate`.",
  },
  HG265: {
    title: "Two quotas would charge the same limit for one request.",
    remedy: "Merge them, or give them different services or keys.",
  },
  HG266: {
    title: "A key of a quota's bucket is already in use or reserved.",
    remedy: "Choose another key. A bucket has each key once, and `quota` and `class` are reserved.",
  },
  HG267: {
    title: "A limit cannot be divided among proxies.",
    remedy: "Use a `gcra` limit of at least one hit an hour, or use RLS calls instead.",
  },
  HG268: {
    title: "A quota sets a rate where a limit already exists.",
    remedy: "Remove one of them. Without its own rate, the quota enforces the existing limit.",
  },
  HG269: {
    title: "Envoy does not support this setting.",
    remedy: "Use one of the expected values. Others crash Envoy 1.40 or let everything pass.",
  },
} as const satisfies Record<string, ProblemRow>;
