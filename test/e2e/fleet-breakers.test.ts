import { describe, expect, it } from "vitest";
import type { PushTimes } from "../../src/rpc/control/layer-pusher.js";
import { ControlPortProcess } from "../support/control-port.js";
import { Envoy } from "../support/envoy.js";
import { type EnvoyOptions, httpFilter, type Json } from "../support/envoy-config.js";
import { joinedTo } from "../support/envoy-control.js";
import { freePort } from "../support/free-port.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, type HttpAsk, HttpClient } from "../support/http-client.js";
import { policyOf } from "../support/service-texts.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** A layer that nobody renews ends soon. */
const times: PushTimes = { ttlMs: 2_000, refreshMs: 600, gapMs: 100, unacknowledgedMsMax: 30_000 };

const fixedLaw =
  "concurrency: {law: fixed, limits: {initial: 100}, sources: [envoyMetrics], " +
  "feedback: [circuitBreakers]}";

/** Sends through an Envoy; ends with the stage. */
function senderTo(envoy: Envoy) {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return (ask: Omit<HttpAsk, "port"> = {}): Promise<HttpAnswer> =>
    http.send({ port: envoy.port, ...ask });
}

/** An Envoy of the tests behind a stub of a loop, with an upstream that answers when it is told. */
async function startRig(
  policy: string,
  options: (upstreamPort: number) => Partial<EnvoyOptions>,
  nodeCluster = "edge",
) {
  const upstream = await startHoldingUpstream(stage);
  const port = await ControlPortProcess.start(stage, { port: 0, policy, times });
  const { bootstrap, moreClusters = [] } = joinedTo({ port: port.port, nodeId: "edge-1" });
  const more = options(upstream.port);
  const envoy = await Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [],
    rateLimits: [],
    ...more,
    moreClusters: [...moreClusters, ...(more.moreClusters ?? [])],
    bootstrap: { ...bootstrap, node: { id: "edge-1", cluster: nodeCluster } },
  });
  const acknowledged = (version: string): Promise<unknown> =>
    waitFor(`Envoy acknowledges ${version}`, async () => {
      const { nodes } = (await port.look()).fleet;
      return nodes[0]?.layer?.acknowledgedVersion === version;
    });
  return { port, envoy, upstream, acknowledged, send: senderTo(envoy) };
}

/** A cluster before a server of this machine. */
function clusterTo(name: string, port: number): Json {
  const address = { socket_address: { address: "127.0.0.1", port_value: port } };
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
    },
  };
}

describe("a service that an Envoy has in several clusters", () => {
  const names = [
    "outbound|80|v1|orders.shop",
    "outbound|80|v2|orders.shop",
    "inbound|8080||",
    "blue",
  ];
  const service =
    "{name: orders, namespace: shop, upstream: {address: orders.shop, port: 80}, " +
    `clusters: ["inbound|8080||", blue], ${fixedLaw}}`;

  it("lets in its share through all of them together, by any of their names", async () => {
    const rig = await startRig(
      policyOf(service),
      (upstreamPort) => ({
        moreClusters: names.map((name) => clusterTo(name, upstreamPort)),
        routesBefore: names.map((cluster, i) => ({
          match: { prefix: `/${i}/` },
          route: { cluster, timeout: "15s" },
        })),
      }),
      "orders.shop",
    );
    await rig.port.say({ version: 1, services: { orders: { shares: { "edge-1": 12 } } } });
    await rig.acknowledged("1.1");
    const letIn = async (paths: readonly number[]): Promise<number> => {
      let refusedCount = 0;
      const answers = paths.flatMap((i) =>
        Array.from({ length: 20 }, () => rig.send({ path: `/${i}/` })),
      );
      for (const answer of answers) {
        void answer.then(({ status }) => {
          if (status === 503) refusedCount += 1;
        });
      }
      await waitFor(
        "all are let in or refused",
        () => rig.upstream.heldCount + refusedCount === answers.length,
      );
      const { heldCount } = rig.upstream;
      rig.upstream.release();
      await Promise.all(answers);
      return heldCount;
    };
    await waitFor("the share is divided", async () => (await letIn([0, 1, 2, 3])) === 12, {
      withinMs: 15_000,
    });
    // Those let in stay in work, so that each look at the clusters finds them.
    const waiting: Promise<HttpAnswer>[] = [];
    const isMostLetIn = async (): Promise<boolean> => {
      const answer = rig.send({ path: "/2/" });
      waiting.push(answer);
      let isRefused = false;
      void answer.then(({ status }) => {
        isRefused = status === 503;
      });
      const before = rig.upstream.heldCount;
      await waitFor("it is let in or refused", () => isRefused || rig.upstream.heldCount > before);
      // Of 12 one stays with each of the others; and one more or less is no news to tell.
      return rig.upstream.heldCount >= 8;
    };
    await waitFor("most of it is where the traffic is", isMostLetIn, { withinMs: 15_000 });
    rig.upstream.release();
    await Promise.all(waiting);
    const { nodes } = (await rig.port.look()).fleet;
    expect(nodes[0]?.services["orders"]?.heldShare).toBe(12);
  });
});

describe("a retry budget that Headgate sends", () => {
  it.each([
    { share: 40, retried: 4, why: "a fifth of what is in work" },
    { share: 10, retried: 2, why: "never more than a fifth of the share at once" },
    { share: 4, retried: 1, why: "one, whatever is in work" },
  ])("with a share of $share lets $retried of as many be tried again: $why", async (row) => {
    const { share, retried } = row;
    const budget = "circuitBreakers: {retryBudget: {percent: 20, minRetries: 3}}";
    const rig = await startRig(
      policyOf(`{name: upstream, retries: {retryOn: [5xx]}, ${budget}, ${fixedLaw}}`),
      () => ({
        route: { retry_policy: { retry_on: "5xx", num_retries: 1 } },
        upstreamCluster: { circuit_breakers: { thresholds: [{ max_retries: 1_000 }] } },
      }),
    );
    await rig.port.say({ version: 1, services: { upstream: { shares: { "edge-1": share } } } });
    await rig.acknowledged("1.1");
    const count = Math.min(share, 20);
    const answers = Array.from({ length: count }, () => rig.send());
    await waitFor("all are in work", () => rig.upstream.heldCount === count);
    const overflows = () => rig.envoy.stat("cluster.upstream.upstream_rq_retry_overflow");
    // One by one: what is in work is what the budget is a part of, so none may be on its way.
    for (let i = 0; i < count; i += 1) {
      rig.upstream.releaseOne(500);
      await waitFor("it is tried again or given up", async () => {
        return (await overflows()) + rig.upstream.heldCount === count;
      });
    }
    expect(rig.upstream.heldCount).toBe(retried);
    rig.upstream.release(200);
    await Promise.all(answers);
  });
});

describe("a pin of Envoy's own controller", () => {
  it("is its limit, while it is sent, where the minimum is fixed", async () => {
    const pinned = "feedback: [adaptiveConcurrency]}, adaptiveConcurrency: {minRtt: {fixed: 20ms}}";
    const law = `concurrency: {law: fixed, limits: {initial: 100}, ${pinned}`;
    const rig = await startRig(policyOf(`{name: upstream, ${law}}`), () => ({
      filtersBefore: [
        httpFilter("adaptive_concurrency", "AdaptiveConcurrency", {
          gradient_controller_config: {
            sample_aggregate_percentile: { value: 90 },
            concurrency_limit_params: {
              max_concurrency_limit: 1_000,
              concurrency_update_interval: "0.1s",
            },
            min_rtt_calc_params: { fixed_value: "0.02s", buffer: { value: 25 } },
          },
        }),
      ],
    }));
    const controller = "http.ingress.adaptive_concurrency.gradient_controller.concurrency_limit";
    const limit = async (): Promise<number> => {
      // The controller looks at its limit when requests have passed.
      const answer = rig.send();
      await waitFor("it is in work", () => rig.upstream.heldCount === 1);
      rig.upstream.release();
      await answer;
      return rig.envoy.stat(controller);
    };
    for (const [version, share] of [
      [1, 7],
      [2, 40],
    ] as const) {
      await rig.port.say({ version, services: { upstream: { shares: { "edge-1": share } } } });
      await waitFor(`the limit is ${share}`, async () => (await limit()) === share);
    }
    await rig.port.kill();
    await waitFor("it is free again", async () => (await limit()) > 40);
  });
});

describe("what is only for the time without Headgate", () => {
  const localType =
    "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
  const percent = (numerator: number): Json => ({ numerator, denominator: "HUNDRED" });

  it("is off while Headgate lives, and on when its layer has run out", async () => {
    const admission = "admissionControl: {when: withoutHeadgate}";
    const local = "localRateLimit: {requests: 1, per: 1h, when: withoutHeadgate}";
    const policy = policyOf(`{name: orders, ${local}, ${admission}}`);
    const rig = await startRig(policy, () => ({
      routesBefore: [
        { match: { prefix: "/ok" }, direct_response: { status: 200 } },
        // Refusals of the one are no failures for the other.
        {
          match: { prefix: "/failing" },
          direct_response: { status: 500 },
          typed_per_filter_config: {
            "envoy.filters.http.local_ratelimit": {
              "@type": localType,
              stat_prefix: "none",
              token_bucket: { max_tokens: 1_000, fill_interval: "1s" },
            },
          },
        },
      ],
      filtersBefore: [
        httpFilter("local_ratelimit", "LocalRateLimit", {
          stat_prefix: "local",
          token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: "3600s" },
          filter_enabled: { default_value: percent(100) },
          filter_enforced: {
            runtime_key: "headgate.local_rate_limit.orders",
            default_value: percent(100),
          },
        }),
        httpFilter("admission_control", "AdmissionControl", {
          enabled: { runtime_key: "headgate.admission_control.orders", default_value: true },
          success_criteria: {
            http_criteria: { http_success_status: [{ start: 100, end: 500 }] },
          },
          sampling_window: "10s",
          rps_threshold: { default_value: 1, runtime_key: "unset" },
        }),
      ],
    }));
    // There is no snapshot, and no loop that could make one.
    await rig.acknowledged("0.0");
    const statuses = async (path: string): Promise<ReadonlySet<number>> => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => rig.send({ path })));
      return new Set(answers.map(({ status }) => status));
    };
    expect(await statuses("/failing")).toEqual(new Set([500]));
    expect(await statuses("/ok")).toEqual(new Set([200]));
    const limited = () => rig.envoy.stat("local.http_local_rate_limit.enforced");
    const refused = () => rig.envoy.stat("http.ingress.admission_control.rq_rejected");
    expect([await limited(), await refused()]).toEqual([0, 0]);
    await rig.port.kill();
    await waitFor("both are on", async () => {
      await statuses("/failing");
      await statuses("/ok");
      return (await limited()) > 0 && (await refused()) > 0;
    });
    const again = await ControlPortProcess.start(stage, { port: rig.port.port, policy, times });
    stage.atEnd(() => again.kill());
    await waitFor("both are off again", async () => {
      return (await statuses("/ok")).has(200) && (await statuses("/ok")).size === 1;
    });
  });
});

/** ext_proc streams are closed well only with this; a layer that is there at the start says it. */
function withGracefulStreams(bootstrap: Json | undefined): Json {
  const graceful = { "envoy.reloadable_features.ext_proc_graceful_grpc_close": true };
  const text = JSON.stringify(bootstrap).replace(
    '"static_layer":{}',
    `"static_layer":${JSON.stringify(graceful)}`,
  );
  return JSON.parse(text);
}

const goldRule = `priority: {rules: [{when: 'request.headers["x-tier"] == "gold"', is: critical}]}`;

const isGold: Json = { headers: [{ name: "x-tier", string_match: { exact: "gold" } }] };

/** An Envoy that asks a Headgate about each request, and can refuse those of a class by itself. */
async function startShedding() {
  const control = await freePort();
  const admission =
    "admission: {maxInFlight: 4, queue: {size: 400, maxWait: 9s}, gate: {}, " +
    "estimatedWait: {sigmoid: {midpoint: 500ms, slope: 10}}}";
  const headgate = await HostedHeadgate.start(stage, {
    policy: policyOf(`{name: upstream, ${admission}, ${goldRule}}`),
    env: { HEADGATE_CONTROL_ADDR: `127.0.0.1:${control}` },
  });
  const upstream = await startHoldingUpstream(stage);
  const { bootstrap, moreClusters = [] } = joinedTo({ port: control, nodeId: "edge-1" });
  const type = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute";
  const envoy = await Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [headgate.grpcPort],
    rateLimits: [],
    extProc: {
      grpc_service: {
        envoy_grpc: {
          cluster_name: "headgate",
        },
        initial_metadata: [{ key: "x-headgate-service", value: "upstream" }],
      },
    },
    routesBefore: [
      { match: { prefix: "/", ...isGold }, route: { cluster: "upstream", timeout: "15s" } },
      {
        match: {
          prefix: "/",
          runtime_fraction: {
            runtime_key: "headgate.shed.upstream.normal",
            default_value: { numerator: 0, denominator: "HUNDRED" },
          },
        },
        direct_response: { status: 503, body: { inline_string: "shed at Envoy" } },
        typed_per_filter_config: {
          "envoy.filters.http.ext_proc": { "@type": type, disabled: true },
        },
      },
    ],
    moreClusters,
    bootstrap: withGracefulStreams(bootstrap),
  });
  return { envoy, upstream, send: senderTo(envoy) };
}

describe("a gate that Envoy answers", () => {
  it("keeps requests away from Headgate while it is closed, and opens by itself", async () => {
    const { envoy, upstream, send } = await startShedding();
    const asked = () => envoy.stat("http.ingress.ext_proc.streams_started");
    const first = send();
    await waitFor("one is in work", () => upstream.heldCount === 1);
    upstream.release(200, 200);
    expect((await first).status).toBe(200);
    const waiting = Array.from({ length: 120 }, () => send());
    const isShed = ({ status, body }: HttpAnswer) => status === 503 && body === "shed at Envoy";
    await waitFor("Envoy answers", async () => isShed(await send()), { withinMs: 8_000 });
    const before = await asked();
    const refused = await Promise.all(Array.from({ length: 50 }, () => send()));
    expect(refused.every(isShed)).toBe(true);
    expect(await asked()).toBe(before);
    const gold = send({ headers: { "x-tier": "gold" } });
    await waitFor(
      "what is critical is still asked for",
      async () => (await asked()) === before + 1,
    );
    let doneCount = 0;
    for (const answer of [gold, ...waiting]) void answer.then(() => (doneCount += 1));
    await waitFor("the queue is gone", () => {
      upstream.release();
      return doneCount === 1 + waiting.length;
    });
    // Nobody has come since: it opens because nobody waits.
    await waitFor("requests are served again", async () => {
      const answer = send();
      let isDone = false;
      void answer.then(() => {
        isDone = true;
      });
      await waitFor("it is in work or refused", () => isDone || upstream.heldCount > 0);
      upstream.release();
      return (await answer).status === 200;
    });
    expect(await asked()).toBeGreaterThan(before + 1);
  });
});
