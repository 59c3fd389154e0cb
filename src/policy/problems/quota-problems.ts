import type { ProblemRow } from "./problem-row.js";

/** Mistakes in what a policy says of quotas. */
export const quotaProblemRows = {
  HG260: {
    title: "A quota's time is not one of whole seconds.",
    remedy: "Write whole seconds: Envoy drops the rest, and less than a second is no time at all.",
  },
  HG261: {
    title: "Two quotas have one name.",
    remedy: "Give each a name of its own: Envoys tell their buckets apart by it.",
  },
  HG262: {
    title: "A quota is for a service that the policy does not have.",
    remedy: "Name a service of `services`, in this file or in another one of the policy.",
  },
  HG263: {
    title: "A quota is of a domain that the policy does not have.",
    remedy: "Name a domain of `rateLimits`; where only quotas use it, it has no descriptors there.",
  },
  HG264: {
    title: "No limit could ever meet a quota's buckets.",
    remedy: "Make its keys those of a limit's path, in order, and as many; or give it a `rate`.",
  },
  HG265: {
    title: "Two quotas would charge one limit for the same request.",
    remedy: "Join them, or give them services or keys of their own.",
  },
  HG266: {
    title: "A key of a quota's bucket is taken.",
    remedy: "Choose another key: a bucket has each once, and `quota` and `class` are Headgate's.",
  },
  HG267: {
    title: "A limit cannot be divided among proxies.",
    remedy: "Use a limit that drains (`gcra`) at one hit an hour or more, or ask by RLS calls.",
  },
  HG268: {
    title: "A quota has a rate where a limit stands already.",
    remedy: "Leave one of them out; without a rate the quota is held to the limit that is there.",
  },
  HG269: {
    title: "Envoy does not do what is wanted of it.",
    remedy: "Use what is expected; other fallbacks crash Envoy 1.40, or let everything pass.",
  },
} as const satisfies Record<string, ProblemRow>;
