import { describe, expect, it } from "vitest";
import { readExisting } from "../../../../src/generate/base/existing-object.js";
import {
  defaultGenerateOptions,
  parseMinorVersion,
  versionRanges,
} from "../../../../src/generate/base/generate-options.js";
import type { GenerateProblem } from "../../../../src/generate/base/generator.js";
import { generate } from "../../../../src/generate/generate.js";
import { checks, expectedFiles, generatedCases, policyOf } from "../../../support/generated.js";

/** Something that is refused or warned of, and what somebody does who does as told. */
interface Remedy {
  readonly id: string;
  /** A part of the message, where the id has several. */
  readonly about?: string;
  /** Below `spec`, beside what every one of these policies has. */
  readonly spec: string;
  /** Of Envoy Gateway. Default 1.8. */
  readonly version?: string;
  /** The part of the hint that is followed. */
  readonly hint: string;
  /** What is written in the place of what. */
  readonly edit?: readonly [string | RegExp, string];
  /** The version that is chosen instead. */
  readonly later?: string;
  /** Objects of the user's, and what becomes of them. Default none. */
  readonly yours?: readonly [string, string];
}

const bothListeners = "listeners: [{name: http, port: 80}, {name: https, port: 443}]";
const listeners = "proxies: {gateway: {listeners: [{name: http, port: 80}]}}";

function service(more: string, name = "orders"): string {
  return `{name: ${name}, hosts: [${name}.example.com], ${more}}`;
}

function serving(...services: readonly string[]): string {
  return `${listeners}\n  services: [${services.join(", ")}]`;
}

/** A service whose requests are asked about. */
function limited(limits: string, descriptors: string): string {
  const rateLimit = `rateLimit: {domain: shop, descriptors: [${descriptors}]}`;
  const domain = `rateLimits: [{domain: shop, descriptors: [${limits}]}]`;
  return `${serving(service(rateLimit))}\n  ${domain}`;
}

const user = "{header: x-user, as: user}";
const minute = "unit: minute, requests_per_unit: 100";
const tokens = '{format: "%DYNAMIC_METADATA(llm:tokens)%"}';

const viaExtProc: Pick<Remedy, "hint" | "edit"> = {
  hint: "or rateLimit: {inExtProc: true} with admission: {}",
  edit: ["rateLimit: {", "admission: {}, rateLimit: {inExtProc: true, "],
};

/** Both ways out of what Envoy Gateway's own limits cannot say. */
function unreported(
  about: string,
  [limits, descriptors]: readonly [string, string],
  [hint, ...edit]: readonly [string, string | RegExp, string],
): readonly Remedy[] {
  const wrong = { id: "HG353", about, spec: limited(limits, descriptors) };
  return [
    { ...wrong, hint, edit },
    { ...wrong, ...viaExtProc },
  ];
}

const limits: readonly Remedy[] = [
  ...unreported(
    "without a limit",
    [`{key: user, value: root, rate_limit: {unlimited: true}}`, `[${user}]`],
    ["leave the unlimited descriptor out", "unlimited: true", minute],
  ),
  ...unreported(
    "with their own limit",
    [
      `{key: user, value: root, rate_limit: {${minute}}}, {key: user, rate_limit: {${minute}}}`,
      `[${user}]`,
    ],
    ["leave the limits of single values out", /\{key: user, value.*?\}\}, /, ""],
  ),
  ...unreported(
    "patterns",
    [`{key: user, value: "a*", rate_limit: {${minute}}}`, `[${user}]`],
    ["list each value that is limited", "a*", "alice"],
  ),
  ...unreported(
    "twice",
    [`{key: user, rate_limit: {${minute}}}`, `[${user}], {entries: [${user}], hits: 2}`],
    ["write it once, with the hits of both", /\[\{header.*hits: 2/, `{entries: [${user}], hits: 3`],
  ),
  ...unreported(
    "refunded",
    [`{key: user, rate_limit: {${minute}}}`, `{entries: [${user}], refund: true}`],
    ["admission: {maxInFlight: 100}", /rateLimit: \{.*\}\]\}/, "admission: {maxInFlight: 100}"],
  ),
  ...unreported(
    "only deny together",
    [`{key: user, rate_limit: {${minute}}, quota_mode: true}`, `[${user}]`],
    ["leave quota_mode out", ", quota_mode: true", ""],
  ),
  ...unreported(
    "settled",
    [`{key: user, rate_limit: {${minute}, charge: settle}}`, `[${user}]`],
    ["hits: 0 there", `[[${user}]]`, `[{entries: [${user}], hits: 0}]`],
  ),
  ...unreported(
    "settled",
    [`{key: user, rate_limit: {${minute}, charge: settle}}`, `[${user}]`],
    ["leave charge: settle out", ", charge: settle", ""],
  ),
  ...unreported(
    "nothing remains",
    [`{key: user, rate_limit: {${minute}, peek: exhausted}}`, `[${user}]`],
    ["leave peek out", ", peek: exhausted", ""],
  ),
  ...unreported(
    "more than one unit",
    ["{key: user, rate_limit: {period: 10s, requests_per_unit: 5}}", `[${user}]`],
    [
      "use a single unit",
      "period: 10s, requests_per_unit: 5",
      "unit: minute, requests_per_unit: 30",
    ],
  ),
  ...unreported(
    "a burst",
    [`{key: user, rate_limit: {${minute}, burst: 5}}`, `[${user}]`],
    ["leave burst out", ", burst: 5", ""],
  ),
  ...unreported(
    "a window algorithm",
    [`{key: user, rate_limit: {${minute}, algorithm: fixed_window}}`, `[${user}]`],
    ["leave algorithm and time_zone out", ", algorithm: fixed_window", ""],
  ),
  {
    id: "HG353",
    about: "a format",
    spec: limited(
      `{key: user, rate_limit: {${minute}}}`,
      `{entries: [${user}], hits: {format: "%BYTES_SENT%"}, when: streamDone}`,
    ),
    hint: 'hits: {format: "%DYNAMIC_METADATA(namespace:key)%"}',
    edit: ["%BYTES_SENT%", "%DYNAMIC_METADATA(llm:tokens)%"],
  },
  // Where ext_proc could not ask it is no way out.
  {
    id: "HG353",
    about: "entries of the kind maskedAddress",
    spec: limited(
      `{key: masked_remote_address, rate_limit: {${minute}}}`,
      "[{maskedRemoteAddress: {v4: 24}}]",
    ),
    hint: "remote_address",
    edit: [/^.*$/s, limited(`{key: remote_address, rate_limit: {${minute}}}`, "[remote_address]")],
  },
];

const old = (spec: string, version: string, about: string) => ({
  id: "HG350",
  spec,
  version,
  about,
});
const retries = serving(service("retries: {}"));
const idle = serving(service("timeouts: {idle: 30s}"));
const query = limited(`{key: user, rate_limit: {${minute}}}`, "[{query: user, as: user}]");
const month = limited("{key: user, rate_limit: {unit: month, requests_per_unit: 9}}", `[${user}]`);
const shadow = limited(`{key: user, rate_limit: {${minute}}, shadow_mode: true}`, `[${user}]`);
const later = limited(
  `{key: user, rate_limit: {${minute}}}`,
  `{entries: [${user}], hits: ${tokens}, when: streamDone}`,
);

const versions: readonly Remedy[] = [
  { ...old(retries, "1.7", "retry budgets"), hint: "--gateway-version 1.8", later: "1.8" },
  {
    ...old(retries, "1.7", "retry budgets"),
    hint: "retryBudget: off",
    edit: ["retries: {}", "retries: {}, circuitBreakers: {retryBudget: off}"],
  },
  { ...old(idle, "1.7", "idle timeouts"), hint: "--gateway-version 1.8", later: "1.8" },
  {
    ...old(idle, "1.7", "idle timeouts"),
    hint: "timeouts.request bounds",
    edit: ["idle", "request"],
  },
  { ...old(query, "1.6", "query parameters"), hint: "--gateway-version 1.7", later: "1.7" },
  {
    ...old(query, "1.6", "query parameters"),
    hint: "limit by a header",
    edit: ["{query: user,", "{header: x-user,"],
  },
  { ...old(month, "1.4", "per month"), hint: "--gateway-version 1.5", later: "1.5" },
  { ...old(month, "1.4", "per month"), hint: "limit per day", edit: ["month", "day"] },
  {
    ...old(month.replace("month", "week"), "1.8", "per week"),
    hint: "--gateway-version 1.9",
    later: "1.9",
  },
  {
    ...old(month.replace("month", "week"), "1.8", "per week"),
    hint: "limit per day",
    edit: ["week", "day"],
  },
  { ...old(shadow, "1.6", "only count"), hint: "--gateway-version 1.7", later: "1.7" },
  {
    ...old(shadow, "1.6", "only count"),
    hint: "leave out the limit and its descriptors",
    edit: [/rateLimit: \{.*?\]\]\}/, ""],
  },
  { ...old(later, "1.2", "after the response"), hint: "--gateway-version 1.3", later: "1.3" },
  {
    ...old(later, "1.2", "after the response"),
    hint: "leave hits and when out",
    edit: [/\{entries: (.*\]), hits.*streamDone\}/, "$1"],
  },
];

const fixedRtt = serving(service("adaptiveConcurrency: {minRtt: {fixed: 20ms}}"));
const pinned = (name: string) =>
  service(
    "adaptiveConcurrency: {minRtt: {fixed: 20ms}}, " +
      `clusters: [httproute/headgate/${name}/rule/0], ` +
      "concurrency: {law: gradient, limits: {max: 400}, feedback: [adaptiveConcurrency]}",
    name,
  );
const breakers = "concurrency: {law: gradient, limits: {max: 400}, feedback: [circuitBreakers]}";

const timesOf = (timeout: string): string => {
  const target = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: orders}";
  const head = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy";
  const spec = `{targetRefs: [${target}], timeout: {http: ${timeout}}}`;
  return `${head}\nmetadata: {name: mine, namespace: headgate}\nspec: ${spec}\n`;
};
const slower = timesOf("{requestTimeout: 30s}");
const fiveSeconds = serving(service("timeouts: {request: 5s}"));

const others: readonly Remedy[] = [
  {
    id: "HG349",
    spec: fiveSeconds,
    yours: [slower, timesOf("{}")],
    hint: "remove it from your object",
  },
  {
    id: "HG349",
    spec: fiveSeconds,
    yours: [slower, slower],
    hint: "set the same value in the policy",
    edit: ["5s", "30s"],
  },
  {
    id: "HG321",
    version: "1.4",
    spec: fixedRtt,
    hint: "--gateway-version 1.5",
    later: "1.5",
  },
  {
    id: "HG321",
    version: "1.4",
    spec: fixedRtt,
    hint: "use a sampled minRtt",
    edit: ["minRtt: {fixed: 20ms}", ""],
  },
  {
    id: "HG321",
    version: "1.2",
    spec: serving(service("")).replace("proxies: {", "proxies: {overload: {cpu: {}}, "),
    hint: "watch the heap instead",
    edit: ["cpu: {}", "maxHeap: 512Mi"],
  },
  {
    id: "HG324",
    spec: serving(pinned("orders"), pinned("search")),
    hint: "feedback: [circuitBreakers]",
    edit: [/feedback: \[adaptiveConcurrency\]/g, "feedback: [circuitBreakers]"],
  },
  {
    id: "HG348",
    spec: "services: [{name: orders, upstream: {address: api.example.com, port: 443}}]",
    hint: "tls: off",
    edit: ["port: 443", "port: 443, tls: off"],
  },
  {
    id: "HG359",
    spec: serving("{name: orders, upgrades: []}"),
    hint: "leave upgrades out",
    edit: ["upgrades: []", "timeouts: {}"],
  },
  {
    id: "HG343",
    about: "localRateLimit",
    spec: serving("{name: orders, localRateLimit: {requests: 5}}"),
    hint: "add hosts",
    edit: ["name: orders", "name: orders, hosts: [shop.example.com]"],
  },
  {
    id: "HG345",
    spec: serving(service(breakers)),
    hint: 'clusters: ["httproute/headgate/orders/rule/0"]',
    edit: ["concurrency", 'clusters: ["httproute/headgate/orders/rule/0"], concurrency'],
  },
  {
    id: "HG345",
    spec: serving(service(breakers)),
    hint: "and the clusters of further rules of the HTTPRoute",
    edit: ["concurrency", 'clusters: ["httproute/headgate/orders/rule/1"], concurrency'],
  },
  {
    id: "HG351",
    about: "successRate",
    spec: serving(service("outlierDetection: {successRate: {}}")),
    hint: "leave it out",
    edit: ["successRate: {}", ""],
  },
  {
    id: "HG351",
    about: "maxEjectionTime",
    spec: serving(service("outlierDetection: {maxEjectionTime: 1h}")),
    hint: "leave it out",
    edit: ["maxEjectionTime: 1h", ""],
  },
  {
    id: "HG352",
    spec: serving(service("retries: {retryOn: [connectFailure, rateLimited]}")),
    hint: "leave rateLimited out",
    edit: [", rateLimited", ""],
  },
  {
    id: "HG354",
    spec: serving(service("admission: {maxInFlight: 10}")).replace(
      "proxies: {",
      "proxies: {headgate: {address: headgate.example.com}, ",
    ),
    hint: "headgate.headgate.svc.cluster.local",
    edit: ["headgate.example.com", "headgate.headgate.svc.cluster.local"],
  },
  {
    id: "HG355",
    spec: `${serving(service("usage: {model: body, from: body}"))}
  budgets: [{name: all, amount: 10 calls, period: day, over: {fallback: {cluster: cheaper}}}]`,
    hint: "fallback: {header: {x-tier: cheap}}",
    edit: ["{cluster: cheaper}", "{header: {x-tier: cheap}}"],
  },
  {
    id: "HG356",
    spec: serving(service("")).replace("proxies: {", "proxies: {overload: {maxConnections: 100}, "),
    hint: "proxies.listener.maxConnections",
    edit: ["overload", "listener"],
  },
  {
    id: "HG357",
    spec: serving(service("")).replace("proxies: {", "proxies: {overload: {maxHeap: 512Mi}, "),
    hint: "leave heap to Envoy Gateway",
    edit: ["overload: {maxHeap: 512Mi}, ", ""],
  },
  {
    id: "HG366",
    about: "bypassed paths",
    spec: limited(`{key: user, rate_limit: {${minute}}}`, `[${user}]`).replace(
      "rateLimit: {",
      "priority: {bypassPaths: [/ping]}, rateLimit: {",
    ),
    hint: "rateLimit: {inExtProc: true} with admission",
    edit: ["rateLimit: {", "admission: {}, rateLimit: {inExtProc: true, "],
  },
  {
    id: "HG367",
    spec: serving(service("localRateLimit: {requests: 5}")).replace(listeners, ""),
    hint: bothListeners,
    edit: ["services", `proxies: {gateway: {${bothListeners}}}\n  services`],
  },
];

const rows = [...limits, ...versions, ...others];

function problemsOf(spec: string, version: string, yours = ""): readonly GenerateProblem[] {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}";
  const text = `${head}\nspec:\n  ${spec}\n`;
  const gatewayVersion = parseMinorVersion(version, versionRanges.gatewayVersion);
  if (gatewayVersion === undefined) throw new Error(`${version} is not in range`);
  const policy = policyOf([{ file: "policy.yaml", text }]);
  const existing = readExisting([{ file: "yours.yaml", text: yours }]).objects;
  const options = { ...defaultGenerateOptions, gatewayVersion, existing };
  return generate({ target: "gateway", policy, options }, checks).problems;
}

describe("what messages about Envoy Gateway say to do", () => {
  it.each(rows.map((row) => [`${row.id} ${row.about ?? ""}: ${row.hint}`, row] as const))(
    "helps: %s",
    (_, { id, about = "", spec, version = "1.8", hint, edit, later: next = version, yours }) => {
      const isIt = (problem: GenerateProblem) =>
        problem.id === id && problem.message.includes(about);
      const found = problemsOf(spec, version, yours?.[0]).find(isIt);
      expect(found?.hint).toContain(hint);
      const done = edit === undefined ? spec : spec.replace(edit[0], edit[1]);
      const left = problemsOf(done, next, yours?.[1]).filter((one) => {
        return isIt(one) || one.severity === "error";
      });
      expect(left).toEqual([]);
    },
  );

  it("is known of every problem that golden cases show", () => {
    const shown = generatedCases()
      .filter(({ target }) => target === "gateway")
      .flatMap(
        (given) =>
          expectedFiles(given)
            .get("problems.txt")
            ?.match(/ HG3\d\d /g) ?? [],
      );
    const known: ReadonlySet<string> = new Set(rows.map(({ id }) => id));
    expect([...new Set(shown)].filter((id) => !known.has(id.trim()))).toEqual([]);
  });
});
