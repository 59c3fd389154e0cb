import { describe, expect, it } from "vitest";
import { readEnvoyImage } from "../../../src/app/config/envoy-image.js";
import { comparedDescriptorsMax } from "../../../src/doctor/descriptor-checks.js";
import { diagnose } from "../../../src/doctor/diagnose.js";
import { type DoctorInput, findingsMax } from "../../../src/doctor/diagnostic.js";
import { doctorProblemIds } from "../../../src/doctor/doctor-problems.js";
import { findDeprecated } from "../../../src/generate/check/deprecated-fields.js";
import { EnvoyApi } from "../../../src/generate/check/envoy-api.js";
import {
  type Dumped,
  doctorInputOf,
  doctorPolicyOf,
  doctorPolicyText,
  dumpOf,
  findingsOf,
  generatedDump,
  plainMapOf,
  rightStats,
} from "../../support/doctor.js";

interface Parts {
  readonly bootstrap: Dumped;
  readonly clusters: Dumped;
  readonly manager: Dumped;
}

/** The parts of a dump that tests break. */
function partsOf(dump: Dumped): Parts {
  const [bootstrap, clusters, listeners] = dump["configs"] ?? [];
  const chain = listeners?.["static_listeners"]?.[0]?.["listener"]?.["filter_chains"]?.[0];
  const manager = chain?.["filters"]?.find((filter) =>
    filter["name"]?.endsWith("http_connection_manager"),
  )?.["typed_config"];
  const own = bootstrap?.["bootstrap"];
  if (own === undefined || clusters === undefined || manager === undefined) throw new Error("dump");
  return { bootstrap: own, clusters, manager };
}

function clusterOf({ clusters }: Parts, name: string): Dumped {
  const found = clusters["static_clusters"]?.find((one) => one["cluster"]?.["name"] === name);
  const cluster = found?.["cluster"];
  if (cluster === undefined) throw new Error(`no cluster ${name}`);
  return cluster;
}

function filterOf({ manager }: Parts, name: string): Dumped {
  const found = manager["http_filters"]?.find((one) => one["name"]?.endsWith(name));
  if (found === undefined) throw new Error(`no filter ${name}`);
  return found;
}

function hostOf({ manager }: Parts): Dumped {
  const host = manager["route_config"]?.["virtual_hosts"]?.[0];
  if (host === undefined) throw new Error("no host");
  return host;
}

function limitsOf(parts: Parts): Dumped | undefined {
  return hostOf(parts)["typed_per_filter_config"]?.[rateLimits]?.["rate_limits"];
}

function firstLimitOf(parts: Parts): Dumped | undefined {
  return limitsOf(parts)?.[0];
}

/** Sets what stands at a place, whatever its type. */
function set(at: Dumped | undefined, name: string, value: unknown): void {
  Reflect.set(Object(at), name, value);
}

function remove(at: Dumped | undefined, name: string): void {
  Reflect.deleteProperty(Object(at), name);
}

function brokenDump(break_: (parts: Parts) => void): Pick<DoctorInput, "dump"> {
  const dump = generatedDump();
  break_(partsOf(dump));
  return { dump: dumpOf(dump) };
}

function statsOf(changes: Readonly<Record<string, number>>): Pick<DoctorInput, "stats"> {
  return { stats: [new Map(Object.entries({ ...rightStats, ...changes }))] };
}

/** Rate limits' answers that an Envoy has missed, and those that it has. */
function missed(error: number, ok: number): Readonly<Record<string, number>> {
  const prefix = "cluster.orders.ratelimit.headgate.";
  return { [`${prefix}error`]: error, [`${prefix}ok`]: ok, [`${prefix}over_limit`]: 0 };
}

/** Statistics at the beginning of a watch, and at its end. */
function watchedOf(
  ...samples: readonly Readonly<Record<string, number>>[]
): Pick<DoctorInput, "stats"> {
  return { stats: samples.flatMap((changes) => statsOf(changes).stats) };
}

const removeFilters =
  (...names: readonly string[]) =>
  ({ manager }: Parts): void => {
    const left = manager["http_filters"]?.filter(
      (one) => !names.some((name) => one["name"]?.endsWith(name)),
    );
    set(manager, "http_filters", left);
  };

const rateLimits = "envoy.filters.http.ratelimit";

/** One thing that is wrong, and what is found. */
const cases: readonly {
  readonly what: string;
  readonly wrong: () => Partial<DoctorInput>;
  readonly found: readonly string[];
}[] = [
  {
    what: "no filter that asks",
    wrong: () => brokenDump(removeFilters(".ratelimit", ".ext_proc", ".ext_proc.usage")),
    found: ["HG500 error"],
  },
  {
    what: "no rate-limit filter, and a policy with rate limits",
    wrong: () => brokenDump(removeFilters(".ratelimit")),
    found: ["HG500 error"],
  },
  {
    what: "a filter behind the router",
    wrong: () => brokenDump(({ manager }) => manager["http_filters"]?.reverse()),
    found: ["HG501 error", "HG501 error", "HG501 error"],
  },
  {
    what: "no cluster of Headgate's",
    wrong: () => brokenDump((parts) => set(clusterOf(parts, "headgate"), "name", "somebody")),
    found: ["HG502 error"],
  },
  {
    what: "a cluster that speaks HTTP/1.1",
    wrong: () =>
      brokenDump((parts) =>
        remove(clusterOf(parts, "headgate"), "typed_extension_protocol_options"),
      ),
    found: ["HG503 error"],
  },
  {
    what: "no healthy host",
    wrong: () => statsOf({ "cluster.headgate.membership_healthy": 0 }),
    found: ["HG504 error"],
  },
  {
    what: "a domain that the policy does not have",
    wrong: () =>
      brokenDump((parts) =>
        set(hostOf(parts)["typed_per_filter_config"]?.[rateLimits], "domain", "shopp"),
      ),
    found: ["HG506 error"],
  },
  {
    what: "a descriptor that meets no limit, so that a limit is not reached",
    wrong: () =>
      brokenDump((parts) => {
        firstLimitOf(parts)?.["actions"]?.reverse();
      }),
    found: ["HG507 error", "HG509 warning"],
  },
  {
    what: "costs told after responses to a limit that does not settle",
    wrong: () => brokenDump((parts) => set(firstLimitOf(parts), "apply_on_stream_done", true)),
    found: ["HG513 warning"],
  },
  {
    what: "a field that Envoy's API gives up",
    wrong: () => {
      const api = new EnvoyApi(readEnvoyImage());
      const dump = generatedDump();
      const [cluster] = partsOf(dump).bootstrap["static_resources"]?.["clusters"] ?? [];
      set(cluster, "http2_protocol_options", {});
      return { deprecated: findDeprecated(plainMapOf(dump), api) };
    },
    found: ["HG562 warning"],
  },
  {
    what: "routes that ask for nothing",
    wrong: () =>
      brokenDump((parts) => remove(hostOf(parts)["typed_per_filter_config"], rateLimits)),
    found: ["HG508 error"],
  },
  {
    what: "rate limits that are enforced half of the requests at run time",
    wrong: () => ({
      runtime: plainMapOf({
        entries: { "ratelimit.http_filter_enforcing": { final_value: "50" } },
      }),
    }),
    found: ["HG510 warning"],
  },
  {
    what: "another active policy",
    wrong: () => {
      const { headgate } = doctorInputOf();
      return { headgate: headgate && { ...headgate, policyVersion: "other" } };
    },
    found: ["HG511 warning"],
  },
  {
    what: "one missed answer of many",
    wrong: () => statsOf({ "cluster.orders.ratelimit.headgate.error": 1 }),
    found: ["HG520 warning"],
  },
  {
    what: "two missed answers of the first hundred",
    wrong: () => statsOf(missed(2, 104)),
    found: ["HG520 warning"],
  },
  {
    what: "the missed answers of a cold start, some minutes later",
    wrong: () => statsOf({ ...missed(8, 98), "server.uptime": 300 }),
    found: ["HG520 warning"],
  },
  {
    what: "one missed answer of a hundred, over many calls",
    wrong: () => statsOf({ ...missed(10, 990), "server.uptime": 300 }),
    found: ["HG520 error"],
  },
  {
    what: "fewer missed answers than one of a hundred, over many calls",
    wrong: () => statsOf({ ...missed(10, 1_000), "server.uptime": 300 }),
    found: ["HG520 warning"],
  },
  {
    what: "half of few answers missed",
    wrong: () => statsOf({ ...missed(5, 5), "server.uptime": 300 }),
    found: ["HG520 error"],
  },
  {
    what: "missed answers of an Envoy that has just started",
    wrong: () => statsOf({ ...missed(30, 100), "server.uptime": 20 }),
    found: ["HG520 warning"],
  },
  {
    what: "no answer for an Envoy that has started before Headgate",
    wrong: () => statsOf({ ...missed(30, 0), "server.uptime": 20 }),
    found: ["HG520 warning"],
  },
  {
    what: "missed answers of an Envoy that has just started, while it was watched",
    wrong: () => watchedOf(missed(30, 10), { ...missed(60, 20), "server.uptime": 20 }),
    found: ["HG520 error"],
  },
  {
    what: "missed answers from before it was watched",
    wrong: () => watchedOf(missed(100, 500), missed(100, 600)),
    found: ["HG520 warning"],
  },
  {
    what: "two missed answers while it was watched",
    wrong: () => watchedOf(missed(100, 500), missed(102, 520)),
    found: ["HG520 warning"],
  },
  {
    what: "many missed answers while it was watched, after many that came",
    wrong: () => watchedOf(missed(0, 100_000), missed(50, 100_050)),
    found: ["HG520 error"],
  },
  {
    what: "many missed answers of rate limits",
    wrong: () =>
      statsOf({
        "cluster.orders.ratelimit.headgate.error": 100,
        "cluster.orders.ratelimit.headgate.failure_mode_allowed": 100,
      }),
    found: ["HG520 error"],
  },
  {
    what: "many missed answers of admission",
    wrong: () => statsOf({ "http.ingress.ext_proc.headgate.message_timeouts": 500 }),
    found: ["HG521 error"],
  },
  {
    what: "a breaker before Headgate that refused",
    wrong: () => statsOf({ "cluster.headgate.upstream_rq_active_overflow": 2 }),
    found: ["HG522 error"],
  },
  {
    what: "a timeout that is shorter than a decision",
    wrong: () =>
      brokenDump((parts) =>
        set(filterOf(parts, ".ratelimit")["typed_config"], "timeout", "0.001s"),
      ),
    found: ["HG523 warning"],
  },
  {
    what: "no timeout at all",
    wrong: () =>
      brokenDump((parts) => set(filterOf(parts, ".ratelimit")["typed_config"], "timeout", "0s")),
    found: ["HG523 error"],
  },
  {
    what: "a queue that is longer than Envoy waits",
    wrong: () =>
      brokenDump((parts) =>
        remove(filterOf(parts, ".ext_proc")["typed_config"], "max_message_timeout"),
      ),
    found: ["HG524 error"],
  },
  {
    what: "no guard against resets",
    wrong: () =>
      brokenDump(({ bootstrap }) =>
        set(bootstrap["layered_runtime"]?.["layers"]?.[0], "static_layer", {}),
      ),
    found: ["HG525 warning"],
  },
  {
    what: "no trailers of responses",
    wrong: () =>
      brokenDump((parts) =>
        remove(
          filterOf(parts, ".ext_proc")["typed_config"]?.["processing_mode"],
          "response_trailer_mode",
        ),
      ),
    found: ["HG526 warning"],
  },
  {
    what: "the usual breaker before ext_proc",
    wrong: () => brokenDump((parts) => remove(clusterOf(parts, "headgate"), "circuit_breakers")),
    found: ["HG527 warning"],
  },
  {
    what: "no filter that shows responses",
    wrong: () => brokenDump(removeFilters(".ext_proc.usage")),
    found: ["HG530 error"],
  },
  ...[
    ["observability_mode", false],
    ["failure_mode_allow", false],
    ["processing_mode", { response_body_mode: "NONE" }],
    ["metadata_options", {}],
  ].map(([name, value]) => ({
    what: `a filter that shows responses with ${name} ${JSON.stringify(value)}`,
    wrong: () =>
      brokenDump((parts) =>
        set(filterOf(parts, ".ext_proc.usage")["typed_config"], String(name), value),
      ),
    found: ["HG531 error"],
  })),
  {
    what: "bodies of requests that are not sent",
    wrong: () =>
      brokenDump((parts) => {
        const own = hostOf(parts)["typed_per_filter_config"]?.["envoy.filters.http.ext_proc"];
        remove(own?.["overrides"], "processing_mode");
      }),
    found: ["HG532 error"],
  },
  {
    what: "responses that may be compressed",
    wrong: () => brokenDump((parts) => remove(hostOf(parts), "request_headers_to_remove")),
    found: ["HG533 warning"],
  },
  ...[
    ["route_cache_action", "RETAIN"],
    ["disable_clear_route_cache", true],
  ].map(([name, value]) => ({
    what: `a route that is kept by ${name}`,
    wrong: () =>
      brokenDump((parts) => set(filterOf(parts, ".ext_proc")["typed_config"], String(name), value)),
    found: ["HG534 error"],
  })),
  {
    what: "no filter that removes strangers' priorities",
    wrong: () => brokenDump(removeFilters(".header_mutation.priority")),
    found: ["HG528 warning"],
  },
  {
    what: "no layer of Headgate's",
    wrong: () =>
      brokenDump(({ bootstrap }) => {
        bootstrap["layered_runtime"]?.["layers"]?.splice(1, 1);
      }),
    found: ["HG540 error"],
  },
  {
    what: "no connection for the layer",
    wrong: () => statsOf({ "runtime.control_plane.connected_state": 0 }),
    found: ["HG541 error"],
  },
  {
    what: "a layer of long ago",
    wrong: () => ({ envoyNowMs: 1_100_000 }),
    found: ["HG542 error"],
  },
  {
    what: "no sink",
    wrong: () => brokenDump(({ bootstrap }) => remove(bootstrap, "stats_sinks")),
    found: ["HG543 error"],
  },
  {
    what: "a matcher that leaves out what Headgate reads",
    wrong: () => {
      const stats = new Map(Object.entries(rightStats));
      stats.delete("cluster.orders.upstream_rq_active");
      return { stats: [stats] };
    },
    found: ["HG544 error"],
  },
  {
    what: "a breaker below what is in flight, and a limit below it",
    wrong: () => statsOf({ "cluster.orders.upstream_rq_active": 150 }),
    found: ["HG550 warning", "HG551 warning"],
  },
  {
    what: "a limit below what is in flight",
    wrong: () => statsOf({ "cluster.orders.upstream_rq_active": 45 }),
    found: ["HG551 warning"],
  },
  {
    what: "requests that a service's breaker refused",
    wrong: () => statsOf({ "cluster.orders.upstream_rq_pending_overflow": 9 }),
    found: ["HG550 warning", "HG554 warning"],
  },
  {
    what: "requests that it refused while it was watched",
    wrong: () => {
      const overflow = "cluster.orders.upstream_rq_active_overflow";
      const [before, after] = [statsOf({ [overflow]: 5 }), statsOf({ [overflow]: 9 })];
      return { stats: [...before.stats, ...after.stats] };
    },
    found: ["HG550 warning", "HG554 warning"],
  },
  {
    what: "outlier detection without a cap",
    wrong: () =>
      brokenDump((parts) =>
        remove(clusterOf(parts, "orders")["outlier_detection"], "max_ejection_percent"),
      ),
    found: ["HG552 warning"],
  },
  {
    what: "refusals that are tried again at once",
    wrong: () =>
      brokenDump((parts) => set(hostOf(parts), "retry_policy", { retry_on: "envoy-ratelimited" })),
    found: ["HG553 warning"],
  },
  { what: "an old Envoy", wrong: () => ({ envoyVersion: "1.20.1" }), found: ["HG560 warning"] },
  {
    what: "another version of Headgate",
    wrong: () => ({ ownVersion: "2.0.0" }),
    found: ["HG560 warning"],
  },
  {
    what: "clocks that differ",
    wrong: () => ({
      clocks: {
        envoy: { aheadMs: 9_000, errorMs: 500 },
        headgate: { aheadMs: 0, errorMs: 500 },
      },
    }),
    found: ["HG561 warning"],
  },
  {
    what: "a store that is away",
    wrong: () => ({ headgate: { ...rightHeadgate(), ...away } }),
    found: ["HG512 error"],
  },
  {
    what: "a Headgate that cannot be asked",
    wrong: () => ({ headgate: undefined, headgateFailure: "nothing listens there" }),
    found: ["HG505 error"],
  },
];

const rightHeadgate = () => {
  const { headgate } = doctorInputOf();
  if (headgate === undefined) throw new Error("it is asked");
  return headgate;
};

const away = { status: "degraded", storeState: "unavailable" } as const;

/** The policy of the tests with two limits more, and a quota of one of them. */
const quotaPolicyText = doctorPolicyText
  .replace(
    "  services:\n",
    `        - {key: tenant, rate_limit: {unit: second, requests_per_unit: 10}}
        - {key: other, rate_limit: {unit: second, requests_per_unit: 10}}
  services:
`,
  )
  .concat("  quotas: [{name: tenants, domain: shop, bucket: [{header: x-tenant, as: tenant}]}]\n");

describe("diagnose()", () => {
  it("finds nothing in what is generated, and lists what is right", () => {
    const looks = diagnose(doctorInputOf());
    expect(looks.filter(({ kind }) => kind !== "pass")).toEqual([]);
    expect(new Set(looks.map(({ id }) => id)).size).toBe(doctorProblemIds.length);
  });

  it.each(cases)("finds $what, and nothing else", ({ wrong, found }) => {
    const findings = findingsOf(doctorInputOf(wrong()));
    expect(findings.map(({ id, severity }) => `${id} ${severity}`)).toEqual(found);
    for (const { seen } of findings) expect(seen).toMatch(/\S/);
  });

  it("has a case for every id", () => {
    const covered = new Set(cases.flatMap(({ found }) => found.map((text) => text.slice(0, 5))));
    expect(doctorProblemIds.filter((id) => !covered.has(id))).toEqual([]);
  });

  it("names a store that is away before all that follows from it", () => {
    const wrong = { ...statsOf({ "cluster.headgate.membership_healthy": 0 }) };
    const headgate = { ...rightHeadgate(), ...away, lastReloadProblem: true };
    const found = findingsOf(doctorInputOf({ ...wrong, headgate }));
    expect(found.map(({ id }) => id)).toEqual(["HG512", "HG504", "HG505"]);
  });

  describe("of a breaker that refuses, while it is watched", () => {
    const overflow = "cluster.orders.upstream_rq_active_overflow";
    const watched = (before: number, after: number) => ({
      stats: [before, after].flatMap((count) => statsOf({ [overflow]: count }).stats),
    });
    const seenOf = (wrong: Partial<DoctorInput>): readonly string[] =>
      findingsOf(doctorInputOf(wrong)).flatMap(({ id, seen }) => (id === "HG554" ? [seen] : []));

    it("counts what it has refused since the watch began", () => {
      expect(seenOf(watched(5, 9))).toEqual([
        expect.stringMatching(/^the breaker of orders refused 4 requests while it was watched/),
      ]);
    });

    it("says nothing of what it refused before", () => {
      expect(seenOf(watched(9, 9))).toEqual([]);
    });

    it("says how many places are kept for HIGH, by the layer or else by the cluster", () => {
      const high = [{ priority: "HIGH", max_requests: 7 }];
      const { dump } = brokenDump((parts) => {
        set(clusterOf(parts, "orders"), "circuit_breakers", { thresholds: high });
      });
      const words = (places: number) => [
        expect.stringContaining(`; ${places} more are reserved for HIGH`),
      ];
      expect(seenOf({ ...watched(5, 9), dump })).toEqual(words(7));
      const key = "circuit_breakers.orders.high.max_requests";
      const runtime = { entries: { [key]: { final_value: "3" } } };
      expect(seenOf({ ...watched(5, 9), dump, runtime })).toEqual(words(3));
    });
  });

  it("does not call a limit unreached that a quota divides", () => {
    const policy = doctorPolicyOf(quotaPolicyText);
    const headgate = { ...rightHeadgate(), policyVersion: policy.version };
    const found = findingsOf(doctorInputOf({ policy, headgate }));
    expect(found.map(({ seen }) => seen)).toEqual(["no route sends shop/other"]);
  });

  it("puts errors before warnings, and the worst first", () => {
    const wrong = { ...statsOf({ "cluster.headgate.membership_healthy": 0 }), envoyNowMs: 9e9 };
    const found = findingsOf(doctorInputOf({ ...wrong, ownVersion: "2" }));
    expect(found.map(({ id }) => id)).toEqual(["HG504", "HG542", "HG560"]);
  });

  it.each([
    {
      what: "limits that settle",
      isThere: false,
      asksFirst: false,
      says: undefined,
    },
    {
      what: "a ratelimit file that is asked with no hits first",
      isThere: true,
      asksFirst: true,
      says: /up to twice the limit and drain at its rate; envoyproxy\/ratelimit counts them/,
    },
    {
      what: "a ratelimit file that nothing asks first",
      isThere: true,
      asksFirst: false,
      says: /only if they fit, because nothing checks first/,
    },
  ])("says what becomes of costs reported after responses: $what", (row) => {
    const limit = "rate_limit: {unit: second, requests_per_unit: 10";
    const text = row.isThere
      ? "domain: shop\ndescriptors: [{key: plan, value: free, descriptors: [{key: user, " +
        `${limit}}}]}]\n`
      : doctorPolicyText.replace(`${limit}}`, `${limit}, charge: settle}`);
    const { dump } = brokenDump((parts) => {
      const first = firstLimitOf(parts);
      const { actions } = Object(first);
      set(first, "apply_on_stream_done", true);
      const peek = { actions, hits_addend: { number: "0" } };
      if (row.asksFirst) Reflect.apply(Array.prototype.push, limitsOf(parts), [peek]);
    });
    const found = findingsOf(doctorInputOf({ dump, policy: doctorPolicyOf(text) }));
    const later = found.filter(({ id }) => id === "HG513").map(({ seen }) => seen);
    expect(later).toEqual(row.says === undefined ? [] : [expect.stringMatching(row.says)]);
  });

  it("shows findings of one id up to a bound, and says how many more there are", () => {
    const many = brokenDump((parts) => {
      const limits = limitsOf(parts);
      for (let i = 0; i < findingsMax + 5; i += 1) {
        const action = { generic_key: { descriptor_key: `k${i}`, descriptor_value: "v" } };
        Reflect.apply(Array.prototype.push, limits, [{ actions: [action] }]);
      }
    });
    const found = findingsOf(doctorInputOf(many));
    expect(found).toHaveLength(findingsMax + 1);
    expect(found.at(-1)?.seen).toBe("and 5 more like this");
  });

  it("compares descriptors up to a bound, and then says nothing of unreached limits", () => {
    const many = brokenDump((parts) => {
      const settings = hostOf(parts)["typed_per_filter_config"]?.[rateLimits];
      const limits = Array.from({ length: comparedDescriptorsMax + 1 }, (_, i) => ({
        actions: [{ generic_key: { descriptor_key: `k${i}`, descriptor_value: "v" } }],
      }));
      set(settings, "rate_limits", limits);
    });
    const found = findingsOf(doctorInputOf(many));
    expect(new Set(found.map(({ id }) => id))).toEqual(new Set(["HG507"]));
    expect(found.at(-1)?.seen).toBe(`and ${comparedDescriptorsMax - findingsMax} more like this`);
  });

  it("says what was not looked at where nothing but a dump is known", () => {
    const looks = diagnose(
      doctorInputOf({
        stats: [],
        policy: undefined,
        headgate: undefined,
        clocks: {},
        envoyNowMs: undefined,
      }),
    );
    expect(looks.filter(({ kind }) => kind === "finding")).toEqual([]);
    const unseen = looks.filter(({ kind }) => kind === "unseen").map(({ id }) => id);
    expect(unseen).toEqual([
      "HG504",
      "HG505",
      "HG507",
      "HG520",
      "HG521",
      "HG524",
      "HG528",
      "HG540",
      "HG561",
    ]);
  });
});
