import type { ProblemRow } from "./problem-row.js";

/** Mistakes in what a policy says of services. */
export const serviceProblemRows = {
  HG201: {
    title: "A duration is not readable.",
    remedy: "Write whole numbers with ms, s, m, h or d, largest first: 5ms, 2s, 1m30s, 1h.",
  },
  HG202: {
    title: "A value is not a number.",
    remedy: "Write digits, with a point where there is a fraction, and no quotes: 0.75.",
  },
  HG203: {
    title: "A minimum, a start and a maximum are out of order.",
    remedy: "Choose them so that min is at most initial, and initial at most max.",
  },
  HG204: {
    title: "Thresholds are out of order.",
    remedy: "A class is refused no later than the one above it: low, normal, high, critical.",
  },
  HG205: {
    title: "A critical reading is not above its target.",
    remedy: "Capacity falls from target to critical: choose a critical reading above the target.",
  },
  HG206: {
    title: "A gate would close before it opens.",
    remedy: "Choose an openBelow that is less than closeAbove.",
  },
  HG207: {
    title: "A block needs another one that is not there.",
    remedy: "Add what is expected, or remove the block: it would do nothing.",
  },
  HG208: {
    title: "A multiple is not readable.",
    remedy: "Write a number and an x, such as 100x: that many times the service time.",
  },
  HG210: {
    title: "A condition is not CEL.",
    remedy: "Correct it at the caret; texts in it stand in quotes of the other kind than YAML's.",
  },
  HG211: {
    title: "A condition's types do not fit.",
    remedy: "Use fields that there are, with operators and functions for texts.",
  },
  HG212: {
    title: "A condition uses a part of CEL that is not offered.",
    remedy: "Say it with what is expected: conditions have a bounded cost for every request.",
  },
  HG213: {
    title: "A condition costs too much.",
    remedy: "Split it into several rules, or shorten it.",
  },
  HG220: {
    title: "Two services have one name.",
    remedy: "Give each a name of its own: requests, metrics and limits are told apart by it.",
  },
  HG221: {
    title: "Two services have one host.",
    remedy: "Leave the host to one of them; the other is named by the route.",
  },
  HG222: {
    title: "A host is none.",
    remedy: "Write a host name without scheme, port or wildcard: orders.shop.example.",
  },
  HG223: {
    title: "A header's name is none.",
    remedy: "Write the name as Envoy sends it, in lower case and without a colon.",
  },
  HG224: {
    title: "A network is not readable.",
    remedy: "Write an address, or a network with no bit set behind its prefix: 10.0.0.0/8.",
  },
  HG225: {
    title: "A path is none.",
    remedy:
      "Begin it with `/`, without a query and dots as segments; `/*` ends one with all below it.",
  },
  HG226: {
    title: "A name of a service, namespace or quota is none.",
    remedy: "Use lower-case letters, digits and `-`, at most 63, as Kubernetes has it.",
  },
  HG227: {
    title: "A URL is none.",
    remedy: "Begin it with http:// or https://, and write no user or password into a policy.",
  },
  HG228: {
    title: "A selector of series is none.",
    remedy: "Write a metric's name and, in braces, labels with = or != and texts in double quotes.",
  },
  HG229: {
    title: "A JSON pointer is none.",
    remedy: "Begin it with `/` and divide its steps by `/`; ~1 stands for `/`, ~0 for `~`.",
  },
  HG230: {
    title: "A service's rate limit is of a domain that the policy does not have.",
    remedy: "Name a domain of `rateLimits`, in this file or in another one of the policy.",
  },
  HG231: {
    title: "No limit could ever meet a service's descriptor.",
    remedy: "Make its keys those of a limit's path, in order, and as many.",
  },
  HG232: {
    title: "A reading would be stale before the next one can come.",
    remedy: "Choose a staleAfter of several times `every`: a single late answer is no outage.",
  },
  HG240: {
    title: "Two values are in the wrong order.",
    remedy: "Choose them as it is expected: one of them bounds the other.",
  },
  HG241: {
    title: "A quantity of bytes is not readable.",
    remedy: "Write a whole number with Ki, Mi, Gi, Ti, k, M, G, T or nothing: 512Mi, 1Gi.",
  },
  HG242: {
    title: "Two services have one cluster.",
    remedy: "Leave the cluster to one of them: what is seen of it teaches one limit only.",
  },
  HG243: {
    title: "What only Envoy's own filter can ask for is to be asked for in ext_proc.",
    remedy: "Remove `inExtProc`, so that Envoy asks itself, or use parts of address and headers.",
  },
  HG244: {
    title: "A format is not one command operator.",
    remedy: "Write one operator of Envoy's access logs between `%`, and nothing beside it.",
  },
  HG245: {
    title: "A regular expression is not one of RE2.",
    remedy: "Correct it, without lookaround and backreferences; or use prefix, suffix or contains.",
  },
  HG246: {
    title: "A label is none.",
    remedy: "Use letters, digits, `-`, `_` and `.`, at most 63, as Kubernetes has it.",
  },
  HG247: {
    title: "A file's path is none.",
    remedy: "Begin it with `/`: it is read where the proxy runs.",
  },
  HG248: {
    title: "A limit is driven by Headgate, and its baseline would be sampled under it.",
    remedy: "Fix the round trip, `minRtt: {fixed: 20ms}`, or take the word out of `feedback`.",
  },
  HG249: {
    title: "The proxies are described twice.",
    remedy: "Keep `proxies` in one file of the policy.",
  },
} as const satisfies Record<string, ProblemRow>;
