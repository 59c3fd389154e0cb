import { readFile } from "node:fs/promises";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TimedRequest } from "../../../../src/recommend/services/request-sweep.js";
import { AdminServer } from "../../../support/admin-server.js";
import { TestAuthority } from "../../../support/certificates.js";
import { CliFolder, captureCli } from "../../../support/cli.js";
import { FakeTerminal } from "../../../support/fake-terminal.js";
import { runWorld } from "../../../support/service-world.js";
import { SignalServer } from "../../../support/signal-server.js";
import { useStage } from "../../../support/stage.js";
import { waitFor } from "../../../support/wait.js";

const stage = useStage("test");

let folder: CliFolder;
let policy: string;

beforeEach(async () => {
  folder = await CliFolder.create();
  policy = await folder.write(
    "policy.yaml",
    `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {unit: second, requests_per_unit: 20}}
  services:
    - name: orders
      hosts: [orders.example]
      admission: {}
`,
  );
});

afterEach(() => folder.remove());

function recommend(args: readonly string[], env = {}, terminal?: FakeTerminal) {
  const surroundings = terminal === undefined ? { env } : { env, terminal };
  return captureCli(["recommend", "--policy", policy, ...args], surroundings);
}

const world = {
  workers: 20,
  serviceTime: { kind: "lognormal", medianMs: 40, p99Ms: 250 },
  seed: 1,
} as const;

function phases(seconds: number) {
  return [0.2, 0.5, 0.8, 1.2, 0.7, 0.3].map((loadRatio) => ({ loadRatio, seconds }));
}

describe("headgate recommend, with an access log", () => {
  test("proposes what a service needs, and writes it with comments", async () => {
    const lines = runWorld(world, phases(100)).requests.map(({ startUs, durationUs }) => {
      return `${startUs / 1_000_000},orders.example,${durationUs / 1_000},200`;
    });
    const titles = "time,authority,duration,response_code";
    const log = await folder.write("access.csv", [titles, ...lines].join("\n"));
    const edited = await folder.write("edited.yaml", "");
    const html = await folder.write("report.html", "");
    const { code, out } = await recommend(["--write", edited, "--html", html, log]);
    expect(code).toBe(0);
    expect((await captureCli(["check", edited])).code).toBe(0);
    const report = await readFile(html, "utf8");
    expect(report).toContain("Latency over requests in flight");
    expect(report).toMatch(/<svg[\s\S]*knee (?:19|2[01])[\s\S]*<\/svg>/);
    expect(out).toContain("Curve: two segments (asymptotic bounds of operational analysis)");
    expect(out).toContain("`admission: {}` is enough for most services");
    expect(out).toMatch(/admission\.maxInFlight +– +2[67] +optional/);
    expect(out).toMatch(/\+ +admission:\n\+ +deadline:\n\+ +minRemaining: [34]\dms # half of/);
  });

  test("proposes one kind of numbers alone on request", async () => {
    const lines = runWorld(world, phases(30)).requests.map(
      ({ startUs, durationUs }) => `${startUs / 1_000_000},orders.example,${durationUs / 1_000}`,
    );
    const log = await folder.write("access.csv", ["time,authority,duration", ...lines].join("\n"));
    const read = async (only: string) =>
      JSON.parse((await recommend([log, "--only", only, "-o", "json"])).out).recommendation;
    expect((await read("limits")).services).toEqual([]);
    const { services, warnings } = await read("services");
    expect(services).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  test("says what to log where durations are missing", async () => {
    const line = "2026-01-05T08:00:00.5Z,orders.example";
    const log = await folder.write("access.csv", `time,authority\n${line}\n${line}\n`);
    const { code, out } = await recommend([log]);
    expect(code).toBe(4);
    expect(out).toContain("2 requests of services have no duration: log %DURATION%, or name its");
  });
});

describe("headgate recommend, wrong usage", () => {
  test.each([
    { args: [], words: "name access logs, or --prometheus, or --from-fleet" },
    { args: ["--prometheus", "http://a", "--from-fleet"], words: "and one of them alone" },
    { args: ["--prometheus", "http://ann:pw@a"], words: "without a password or a query" },
    { args: ["--prometheus", "ftp://a"], words: "must be a URL such as http://prometheus:9090" },
    { args: ["--prometheus", "http://a", "--step", "10ms"], words: "--step must be a duration" },
    { args: ["--prometheus", "http://a", "--range", "30d"], words: "from two steps to 6d22h40m" },
    { args: ["--prometheus", "http://a", "--query", "speed=1"], words: "one of perSecond," },
    { args: ["--prometheus", "http://a", "--service", "carts"], words: "no service carts" },
    { args: ["--prometheus", "http://a", "--per", "user=@x"], words: "--per needs an access log" },
    { args: ["--prometheus", "http://a", "--watch", "5m"], words: "--watch needs --from-fleet" },
    { args: ["--from-fleet", "--watch", "30d"], words: "--watch must be a duration of at most 1d" },
  ])("refuses $args", async ({ args, words }) => {
    const { code, err } = await recommend(args);
    expect(err).toContain(words);
    expect(err).not.toContain("pw");
    expect(code).toBe(2);
  });
});

describe("headgate recommend --show-queries", () => {
  test("prints the queries, with those that were replaced", async () => {
    const query = "perSecond=sum(rate(my_requests{app=$service}[$window]))";
    const { code, out } = await recommend(["--show-queries", "--query", query, "--step", "2m"]);
    expect(code).toBe(0);
    expect(out).toContain('\nperSecond=sum(rate(my_requests{app="orders"}[2m]))\n');
    expect(out).toContain("\nlatencyMs=sum(rate(envoy_cluster_upstream_rq_time_sum{");
  });
});

describe("headgate recommend --prometheus, with a server that is none", () => {
  const nothing = '{"status":"success","data":{"resultType":"matrix","result":[]}}';

  test.each([
    { why: "a page", answer: "<html>", words: "not JSON, or it is truncated" },
    { why: "too much", answer: " ".repeat(2_200_000), words: "more than 2097152 bytes" },
    { why: "half", answer: nothing.slice(0, 40), words: "not JSON, or it is truncated" },
    { why: "another shape", answer: '{"status":"success"}', words: "not one of Prometheus's" },
  ])("refuses $why, and names the query", async ({ answer, words }) => {
    const server = await SignalServer.start(stage, answer);
    const { code, err, out } = await recommend(["--prometheus", `http://${server.authority}`]);
    expect(err).toContain(`${server.authority}, query perSecond: `);
    expect(err).toContain(words);
    expect(out).toBe("");
    expect(code).toBe(5);
  });

  test.each([400, 302, 401, 503])("refuses status %i", async (status) => {
    const server = await SignalServer.start(stage);
    server.answer = (response) => {
      response.writeHead(status, { location: "http://127.0.0.1:9/" }).end("secret");
    };
    const { code, err } = await recommend(["--prometheus", `http://${server.authority}`]);
    expect(err).toContain(`The response status is ${status}.`);
    expect(err).not.toContain("secret");
    expect(code).toBe(5);
  });

  test("sends its token over TLS of a CA that it was told", async () => {
    const authority = new TestAuthority();
    const tls = authority.issue({ addresses: ["127.0.0.1"] });
    const server = await SignalServer.start(stage, "<html>", tls);
    const url = `https://${server.authority}/prefix/`;
    const ca = await folder.write("ca.pem", authority.certificate);
    const env = { HEADGATE_PROMETHEUS_TOKEN: "tok.en" };
    const untold = await recommend(["--prometheus", url], env);
    expect(untold.err).toMatch(/cannot be reached.*UNABLE_TO_VERIFY/);
    expect(server.questions).toEqual([]);
    await recommend(["--prometheus", url, "--prometheus-ca", ca], env);
    expect(server.questions[0]?.authorization).toBe("Bearer tok.en");
    expect(server.questions[0]?.url).toMatch(/^\/prefix\/api\/v1\/query_range\?query=sum/);
  });

  test("uses the password of HEADGATE_PROMETHEUS_URL for that server alone", async () => {
    const server = await SignalServer.start(stage, "<html>");
    const url = `http://${server.authority}`;
    const own = { HEADGATE_PROMETHEUS_URL: `http://ann:pw@${server.authority}` };
    await recommend(["--prometheus", url], own);
    await recommend(["--prometheus", url], { HEADGATE_PROMETHEUS_URL: "http://ann:pw@other" });
    const [first, second] = server.questions;
    expect(first?.authorization).toBe(`Basic ${btoa("ann:pw")}`);
    expect(second?.authorization).toBeUndefined();
  });
});

describe("headgate recommend --prometheus --only limits", () => {
  const rules = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: everyone, value: all, rate_limit: {unit: minute, requests_per_unit: 9}}
        - {key: user, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 9}}
        - {key: tenant, rate_limit: {unit: minute, requests_per_unit: 9}}
        - key: user
          value: vip
          descriptors: [{key: none, rate_limit: {unit: day, requests_per_unit: 9}}]
        - key: shop
          value_to_metric: true
          descriptors: [{key: item, rate_limit: {unit: minute, requests_per_unit: 9}}]
`;

  /** How many series there are, of how many paths, and hits of callers that are not named. */
  interface SeriesCounts {
    readonly callers: number;
    readonly paths?: number;
    readonly unnamed: number;
  }

  /** Answers as a Prometheus does that has four hits a minute in each series. */
  async function startServer(counts: SeriesCounts) {
    const server = await SignalServer.start(stage);
    const answer = (resultType: string, result: unknown) =>
      JSON.stringify({ status: "success", data: { resultType, result } });
    server.answer = (response, { url = "" }) => {
      const fields = new URL(url, "http://a").searchParams;
      const query = fields.get("query") ?? "";
      const [start, end] = [fields.get("start"), fields.get("end")];
      const count = query.includes("detailed") ? counts.callers : 1;
      const vector = (value: number, metric = {}) => [{ metric, value: [1, String(value)] }];
      if (query.startsWith("count(")) response.end(answer("vector", vector(count)));
      else if (query.startsWith("max_over_time(")) {
        const names = ["tenant", "shop.item"].map((rule) => ({ domain: "shop", rule }));
        response.end(
          answer(
            "vector",
            names.flatMap((one) => vector(3, one)),
          ),
        );
      } else if (query.startsWith("sum(")) {
        response.end(answer("vector", vector(counts.unnamed)));
      } else {
        const times: (readonly [number, string])[] = [];
        for (let time = Number(start); time <= Number(end); time += 60) times.push([time, "4"]);
        const series = Array.from({ length: count }, (_, i) => ({
          metric: { path: `user_${i % (counts.paths ?? count)}` },
          values: times,
        }));
        response.end(answer("matrix", series));
      }
    };
    return server;
  }

  async function run(counts: SeriesCounts) {
    const server = await startServer(counts);
    const path = await folder.write("rules.yaml", rules);
    const source = ["--policy", path, "--prometheus", `http://${server.authority}`];
    const html = await folder.write("limits.html", "");
    const args = [...source, "--range", "4h", "--only", "limits", "--html", html];
    const ran = await captureCli(["recommend", ...args]);
    return { ...ran, server, html: await readFile(html, "utf8") };
  }

  test("proposes limits of rules with one bucket, and of callers that are named", async () => {
    const { out, code, server, html } = await run({ callers: 300, unnamed: 28_800 });
    expect(code).toBe(0);
    expect(out).toContain("shop/user\n288,000 hits, 300 callers, ");
    expect(out).toContain("Proposed: 10 per 1m, burst 20, now 9 and 9");
    expect(out).not.toContain("busiest second");
    expect(out).toContain("  How requests lie within steps of 60 s is unknown.");
    expect(out).toContain("  Estimated from steps of 60 s: it refuses 0 % of the requests (");
    expect(html).toContain("288,000 hits of 300 callers on ");
    expect(html).toContain("Estimated from steps of 60 s: it refuses 0 % of the requests (");
    expect(html).not.toContain("busiest second");
    expect(out).toContain("  9.1 % of the hits are of callers without a series, because a replica");
    expect(out).toContain("shop/everyone_all\n960 hits, one bucket for all, ");
    expect(out).toContain("  960 hits; 1,000 are needed, about 2 times as many");
    for (const rule of ["tenant", "shop.item"]) {
      expect(out).toMatch(new RegExp(`for shop/${rule}:\\n  Prometheus knows the rate of all `));
    }
    // No answer has more than 20,000 values.
    const asked = server.questions.filter(({ url }) => url.includes("sum+by+%28path"));
    expect(asked.filter(({ url }) => url.includes("query_range"))).toHaveLength(4);
    expect(server.questions.some(({ url }) => url.includes("envoy_"))).toBe(false);
  });

  test("proposes nothing where there are more callers than it reads", async () => {
    const { out, code } = await run({ callers: 2_001, unnamed: 0 });
    expect(code).toBe(4);
    expect(out).toContain("shop/user:\n  Prometheus has no hits of it in 4h, or more than 2,000");
  });

  test("adds up series of one caller", async () => {
    const { out } = await run({ callers: 60, paths: 30, unnamed: 0 });
    expect(out).toContain("shop/user\n57,600 hits, 30 callers, ");
    expect(out).toMatch(/busiest minute +8 +8 +8 +8\n/);
    expect(out).not.toContain("callers without a series");
  });

  test("shows its queries, and takes others", async () => {
    const path = await folder.write("rules.yaml", rules);
    const query = "callerHits=sum by (path) (increase(my{d=$domain,r=$rule}[$window]))";
    const args = ["recommend", "--policy", path, "--show-queries", "--query", query];
    const { out } = await captureCli(args);
    expect(out).toContain('\ncallerHits=sum by (path) (increase(my{d="shop",r="user"}[1m]))\n');
    expect(out).toContain('\nhits=round(sum(increase(headgate_hits_total{domain="shop",rule="ev');
    expect(out).not.toContain('"tenant"');
  });
});

describe("headgate recommend --from-fleet", () => {
  let server: AdminServer | undefined;

  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  /** Seconds of a replica that has every second request. */
  function historyOf(requests: readonly TimedRequest[], replica: number) {
    const own = requests.filter((_, i) => i % 2 === replica);
    const firstMs = 10_000 * Math.ceil(Math.min(...own.map((one) => one.startUs / 1_000)) / 10_000);
    const lastMs = Math.max(...own.map(({ startUs }) => startUs / 1_000));
    const count = Math.floor((lastMs - firstMs) / 1_000);
    const [inFlight, admitted] = [new Array(count).fill(0), new Array(count).fill(0)];
    for (const { startUs, durationUs } of own) {
      const from = Math.floor((startUs / 1_000 - firstMs) / 1_000);
      const to = Math.floor(((startUs + durationUs) / 1_000 - firstMs) / 1_000);
      if (from >= 0 && from < count) admitted[from] += 1;
      for (let i = Math.max(0, from); i < Math.min(to, count); i += 1) inFlight[i] += 1;
    }
    return { startMs: firstMs + 1_000, inFlight, admitted };
  }

  test("finds the workers of a service from the seconds of two replicas", async () => {
    const { requests } = runWorld(world, phases(150));
    const histories = [0, 1].map((replica) => historyOf(requests, replica));
    const sinces: (number | undefined)[] = [];
    server = await AdminServer.start({
      fleet: {
        getHistory: ({ service, since, rules }) => {
          if (rules.length > 0) {
            const hits = [50, 320];
            const rule = { domain: "shop", label: "user", start: timestampFromMs(10_000), hits };
            return { replicas: [{ replica: "a", rules: [rule] }] };
          }
          sinces.push(since && timestampMs(since));
          const replicas = histories.map(({ startMs, inFlight, admitted }, i) => ({
            replica: `replica-${i}`,
            services: [
              {
                name: service,
                start: timestampFromMs(startMs),
                inFlight,
                concurrencyLimit: inFlight.map(() => 15),
                rttMs: inFlight.map(() => 0),
                classes: [{ priority: "normal", admitted, refused: [] }],
              },
            ],
          }));
          return { replicas, silentReplicas: 1 };
        },
      },
    });
    const terminal = new FakeTerminal();
    const args = ["--from-fleet", "--watch", "10m", "--admin-url", server.url, "-o", "json"];
    const running = recommend(args, {}, terminal);
    await waitFor("the fleet was asked", () => sinces.length > 0 && terminal.isHeld);
    terminal.interrupt();
    const { code, out, err } = await running;
    expect(code).toBe(0);
    // On a busy machine the first answer takes some of the ten minutes.
    expect(err).toMatch(/^Watching: (10|9)m\S* left, 1,7\d\d seconds of replicas so far\.\n?/);
    const { recommendation } = JSON.parse(out);
    const [{ verdict, observations, missing }] = recommendation.services;
    expect(verdict.kind).toBe("seen");
    expect(verdict.fit.knee).toBeGreaterThan(17);
    expect(verdict.fit.knee).toBeLessThan(25);
    expect(observations.limit).toBe(30);
    // What both polls tell counts once.
    expect(observations.requestCount).toBeLessThan(requests.length);
    expect(observations.requestCount).toBeGreaterThan(0.95 * requests.length);
    const [{ startMs = 0, inFlight = [] } = {}] = histories;
    expect(sinces).toEqual([undefined, startMs + 1_000 * (inFlight.length - 1)]);
    expect(missing.join("\n")).toContain("These are minutes of a running fleet");
    expect(missing.join("\n")).toContain("1 replica did not answer in time.");
    expect(recommendation.notEnough).toEqual([
      { subject: "shop/user", missing: [expect.stringContaining("32 per second at most")] },
    ]);
  });

  test("proposes a limit of one bucket from the hits of all replicas", async () => {
    const path = await folder.write(
      "rules.yaml",
      `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: everyone, value: all, rate_limit: {unit: minute, requests_per_unit: 9}}
        - {key: user, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 9}}
`,
    );
    const start = timestampFromMs(1_767_571_210_000);
    server = await AdminServer.start({
      fleet: {
        getHistory: ({ service }) => ({
          replicas: ["a", "b"].map((replica) => {
            const hits = new Array(720).fill(replica === "a" ? 30 : 20);
            return { replica, rules: [{ domain: "shop", label: "everyone_all", start, hits }] };
          }),
          silentReplicas: service === "" ? 2 : 0,
        }),
      },
    });
    const args = ["recommend", "--policy", path, "--from-fleet", "--admin-url", server.url];
    const { code, out } = await captureCli(args);
    expect(code).toBe(0);
    expect(out).toContain("36,000 hits, one bucket for all, 1 day from 2026-01-05T00:00:00Z");
    // Twice as much as 300 a minute, and as 100 in two steps.
    expect(out).toContain("Proposed: 700 per 1m, burst 200, now 9 and 9");
    expect(out).toContain("  Estimated from steps of 10 s: it refuses 0 % of the requests.");
    expect(out).toContain("  These are minutes of a running fleet: peaks of a day or a week are");
    expect(out).toContain("  2 replicas did not answer in time.");
    expect(out).toContain("shop/user:\n  The fleet keeps no history of its callers; --prometheus");
  });

  test("proposes nothing from a fleet that has just started", async () => {
    server = await AdminServer.start({ fleet: { getHistory: () => ({ replicas: [] }) } });
    const { code, out } = await recommend(["--from-fleet", "--admin-url", server.url]);
    expect(code).toBe(4);
    expect(out).toContain("Latency is known at 0 numbers of requests in flight (from 0 requests)");
    expect(out).toContain("These are minutes of a running fleet");
  });
});
