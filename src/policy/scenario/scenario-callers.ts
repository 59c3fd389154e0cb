import { priorities } from "../../core/admission/priority.js";
import { duration, flag, number, readBy, ruledText, text, whole, words } from "../text/form.js";
import { field, inner, object, placed, wordList } from "../text/object.js";
import { positiveRatioBounds, ratioBounds } from "../text/quantities.js";
import type { TextRule } from "../text/text-rules.js";
import { scenarioRate } from "./scenario-rate.js";
import { scenarioName, someTime } from "./scenario-times.js";

/** Maximum number of keys of one caller. */
const scenarioKeysMax = 100_000;

const headerRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^ -~]/,
  expected: "a value of printable ASCII characters",
};

const headerValue = ruledText(headerRule);

/** Maximum number of headers of one caller. */
const headersMax = 32;

/** Fixed headers, by lower-case name. */
const headers = readBy<ReadonlyMap<string, string>>(
  { kind: "texts", key: /./, value: text(headerRule), max: headersMax },
  (reader, place) => {
    const expected = "headers, such as {x-plan: free}";
    const pairs = reader.readTextMap(place, { title: "headers", expected });
    const read = pairs?.flatMap((pair) => {
      const value = headerValue.read(reader, pair);
      return value === undefined ? [] : [[pair.name.toLowerCase(), value] as const];
    });
    return read && new Map(read);
  },
);

const share = number(ratioBounds);

const classes = object(
  { title: "classes", docs: "The share of each priority class. The rest is `normal`." },
  {
    critical: field(share, "The share of critical requests.", { default: 0 }),
    high: field(share, "The share of high requests.", { default: 0 }),
    normal: field(share, "The share of normal requests.", { default: 0 }),
    low: field(share, "The share of low requests.", { default: 0 }),
  },
  {
    data: (read) => read,
    check(block, read) {
      const sum = priorities.reduce((total, priority) => total + read[priority], 0);
      if (sum <= 1 + 1e-9) return;
      const message = `the shares of the classes add up to ${Number(sum.toFixed(6))}`;
      block.report("", { id: "HG141", message, expected: "1 at most" });
    },
  },
);

const keys = object(
  { title: "keys", docs: "A header with a value for each of many users, drawn for each request." },
  {
    header: field(ruledText(headerRule), "The header, such as `x-user`.", {
      needs: "the name of a header",
    }),
    count: field(whole({ min: 1, max: scenarioKeysMax }), "How many values there are.", {
      needs: "a whole number",
    }),
    zipf: field(
      number({ min: 0, max: 5 }),
      "The exponent of Zipf's law: 0 makes all equally frequent, 1 makes the first twice as " +
        "frequent as the second.",
      { default: 0 },
    ),
    prefix: field(
      ruledText(headerRule),
      "What each value begins with. Default: the caller's name.",
    ),
  },
);

/** Maximum number of connections of one caller. */
const connectionsMax = 100_000;

const keepAlive = object(
  {
    title: "a caller's keepAlive",
    docs: "Connections, each to one Envoy for as long as it lasts.",
  },
  {
    connections: field(whole({ min: 1, max: connectionsMax }), "How many it keeps.", {
      default: 10,
    }),
    lifetime: field(someTime, "How long one lasts at most. Default: as long as its Envoy."),
  },
);

/** Outcomes that a caller may retry. */
const retriedOutcomes = ["refused", "failed", "timeout"] as const;

const retryRules = object(
  { title: "a caller's retries", docs: "How a caller tries again." },
  {
    attempts: field(whole({ min: 1, max: 20 }), "Attempts for each request, with the first.", {
      default: 3,
    }),
    on: field(wordList(retriedOutcomes, 1), "After which outcomes.", {
      default: [...retriedOutcomes],
    }),
    backoff: field(someTime, "The wait before the first retry; it doubles with each.", {
      default: 25,
    }),
    maxBackoff: field(someTime, "The longest wait.", { default: 30_000 }),
    jitter: field(
      words("full", "equal", "none"),
      "The part of the wait that is random: all, half, or nothing.",
      { default: "full" },
    ),
    budget: field(
      number(positiveRatioBounds),
      "Retries at most, as a share of requests. Default: no budget.",
    ),
    hedgeAfter: field(
      someTime,
      "Begins another attempt beside those on their way when no answer has come for so long. The " +
        "first answer counts, and the others are cancelled. Default: it does not.",
    ),
    retryAfter: field(flag, "Whether the caller waits as long as `retry-after` says.", {
      default: false,
    }),
  },
);

/** A caller of a scenario. */
export const scenarioCaller = object(
  { title: "a caller", docs: "Who sends requests: an application, a tenant, a batch job." },
  {
    name: field(scenarioName, "Its name.", { needs: "the caller's name" }),
    service: field(placed(scenarioName), "The service it calls. Default: the first one."),
    rate: field(scenarioRate, "Requests per second over time.", { needs: "requests per second" }),
    arrivals: field(
      words("poisson", "regular", "bursty"),
      "How requests follow each other: independently, evenly, or in bursts of 20.",
      { default: "poisson" },
    ),
    classes: field(inner(classes), "The share of each priority class.", {
      default: classes.defaults,
    }),
    classHeader: field(ruledText(headerRule), "The header that states the class.", {
      default: "x-request-priority",
    }),
    deadline: field(
      duration({ minMs: 1, maxMs: 3_600_000 }),
      "How long an answer to an attempt is of use.",
      { default: 1_000 },
    ),
    statesDeadline: field(flag, "Whether requests state the deadline, as Envoy's do.", {
      default: true,
    }),
    patience: field(someTime, "When the caller stops waiting. Default: at the deadline."),
    retries: field(inner(retryRules), "How it tries again. Default: it does not."),
    keepAlive: field(
      inner(keepAlive),
      "Connections that it keeps. Default: each attempt goes to any Envoy.",
    ),
    keys: field(inner(keys), "Users, each with a header value of its own."),
    host: field(ruledText(headerRule), "The host. Default: the first host of the service."),
    path: field(ruledText(headerRule), "The path.", { default: "/" }),
    method: field(ruledText(headerRule), "The method.", { default: "GET" }),
    headers: field(headers, "Further headers."),
    address: field(ruledText(headerRule), "The source address of requests."),
  },
  {
    data: (read) => read,
    check(block, _, { deadline, patience = deadline }) {
      if (patience >= deadline) return;
      const message = '"patience" is shorter than "deadline"';
      block.refuseOrder(["patience", "deadline"], message, "a patience of at least the deadline");
    },
  },
);

/** A sender of requests. */
export type ScenarioCaller = typeof scenarioCaller.defaults;
