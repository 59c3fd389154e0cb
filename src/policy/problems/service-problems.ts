import type { ProblemRow } from "./problem-row.js";

/** Mistakes in services. */
export const serviceProblemRows = {
  HG201: {
    title: "A duration cannot be parsed.",
    remedy: "Write whole numbers with ms, s, m, h or d, largest first: 5ms, 2s, 1m30s, 1h.",
  },
  HG202: {
    title: "A value is not a number.",
    remedy: "Write digits without quotes, with a point before a fraction: 0.75.",
  },
  HG203: {
    title: "A minimum, an initial and a maximum value are out of order.",
    remedy: "Set min <= initial <= max.",
  },
  HG204: {
    title: "Thresholds are out of order.",
    remedy: "Give a higher class a threshold at least as high: low <= normal <= high <= critical.",
  },
  HG205: {
    title: "A critical reading is not above its target.",
    remedy: "Set `critical` above `target`. Capacity falls from `target` to `critical`.",
  },
  HG206: {
    title: "A gate would close before it opens.",
    remedy: "Set openBelow less than closeAbove.",
  },
  HG207: {
    title: "A block needs another block that is missing.",
    remedy: "Add the expected block, or remove this one. Without it, this block has no effect.",
  },
  HG208: {
    title: "A multiple cannot be parsed.",
    remedy: "Write a number and an x, such as 100x for 100 times the service time.",
  },
  HG210: {
    title: "A condition is not valid CEL.",
    remedy:
      "Fix the syntax at the caret. Inside YAML quotes, use the other kind of quotes for strings.",
  },
  HG211: {
    title: "The types in a condition do not match.",
    remedy: "Use existing fields, with the operators and functions for their type.",
  },
  HG212: {
    title: "A condition uses a part of CEL that Headgate does not support.",
    remedy: "Use the supported parts. They bound the cost of the condition for each request.",
  },
  HG213: {
    title: "A condition is too expensive.",
    remedy: "Split it into several rules, or shorten it.",
  },
  HG220: {
    title: "Two services have the same name.",
    remedy: "Give each service its own name. It identifies requests, metrics and limits.",
  },
  HG221: {
    title: "Two services have the same host.",
    remedy: "Give the host to one of them. Select the other one by its name in the route.",
  },
  HG222: {
    title: "A text is not a host name.",
    remedy: "Write a host name without scheme, port or wildcard: orders.shop.example.",
  },
  HG223: {
    title: "A text is not a header name.",
    remedy: "Write the name as Envoy sends it, in lower case and without a colon.",
  },
  HG224: {
    title: "A network address cannot be parsed.",
    remedy: "Write an IP address or a CIDR block without host bits: 10.0.0.0/8.",
  },
  HG225: {
    title: "A text is not a path.",
    remedy:
      "Start it with `/`, without a query or dot segments. `/*` at the end matches " +
      "everything below.",
  },
  HG226: {
    title: "A text is not a valid name for a service, namespace, quota or waiting room.",
    remedy: "Use at most 63 lower-case letters, digits and `-`, as in Kubernetes.",
  },
  HG227: {
    title: "A text is not a URL.",
    remedy: "Start it with http:// or https://. Do not put a user or password into a policy.",
  },
  HG228: {
    title: "A text is not a series selector.",
    remedy: "Write a metric name and, in braces, labels with = or != and values in double quotes.",
  },
  HG229: {
    title: "A text is not a JSON pointer.",
    remedy: "Start it with `/` and separate its steps with `/`. Write ~1 for `/` and ~0 for `~`.",
  },
  HG230: {
    title: "The rate limit of a service refers to a domain that the policy does not define.",
    remedy: "Name a domain under `rateLimits`, in this or another file of the policy.",
  },
  HG231: {
    title: "No limit can match a descriptor of a service.",
    remedy: "Use the same keys in the same order as the path of a limit.",
  },
  HG232: {
    title: "A reading would become stale before the next one can arrive.",
    remedy: "Set staleAfter to several times `every`, so that one late answer causes no outage.",
  },
  HG233: {
    title: "A text is not the address of a Kafka broker.",
    remedy: "Write the host and the port of the listener: kafka.example:9092.",
  },
  HG234: {
    title: "A text is not the name of a Kafka topic.",
    remedy: "Use letters, digits, `.`, `_` and `-`, and at most one `*` for any characters.",
  },
  HG235: {
    title: "A password for Kafka would be sent unencrypted.",
    remedy: "Set `tls: true`, or use SCRAM-SHA-256 or SCRAM-SHA-512, which do not send it.",
  },
  HG236: {
    title: "A request costs more hits than a limit can hold at once, so it never fits.",
    remedy: "Raise the `burst` of the limit to the cost, or lower `hits`.",
    severity: "warning",
  },
  HG237: {
    title: "A request typically costs more hits than a limit can hold at once.",
    remedy:
      "Raise the `burst` of the limit above the largest cost. A charge above it is refused, " +
      "and one after the response is not counted.",
    severity: "warning",
  },
  HG240: {
    title: "Two values are in the wrong order.",
    remedy: "Set them as expected. One of them bounds the other.",
  },
  HG241: {
    title: "A byte quantity cannot be parsed.",
    remedy: "Write a whole number, optionally with Ki, Mi, Gi, Ti, k, M, G or T: 512Mi, 1Gi.",
  },
  HG242: {
    title: "Two services have the same cluster.",
    remedy: "Give the cluster to one of them. Reports about a cluster train one limit only.",
  },
  HG243: {
    title:
      "A descriptor that only Envoy's own filter can build is set to be sent through ext_proc.",
    remedy:
      "Remove `inExtProc`, so that Envoy calls the service, or use the address and headers only.",
  },
  HG244: {
    title: "A format is not a single command operator.",
    remedy: "Write one operator of Envoy's access log format between `%`, and nothing else.",
  },
  HG245: {
    title: "A regular expression is not valid RE2.",
    remedy: "Remove lookaround and backreferences, or use prefix, suffix or contains.",
  },
  HG246: {
    title: "A text is not a valid label.",
    remedy: "Use at most 63 letters, digits, `-`, `_` and `.`, as in Kubernetes.",
  },
  HG247: {
    title: "A text is not an absolute file path.",
    remedy: "Start it with `/`. The proxy reads the file on its own machine.",
  },
  HG248: {
    title: "Headgate drives a limit that also samples its own baseline.",
    remedy: "Fix the round trip with `minRtt: {fixed: 20ms}`, or remove the value from `feedback`.",
  },
  HG249: {
    title: "The key `proxies` is defined twice.",
    remedy: "Keep `proxies` in one file of the policy.",
  },
} as const satisfies Record<string, ProblemRow>;
