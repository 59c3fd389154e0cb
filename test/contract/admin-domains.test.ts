import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { adminMethods } from "../../src/rpc/admin/methods.js";
import { adminClients, startAdminApp } from "../support/admin.js";
import { ControlClient } from "../support/control-client.js";
import { gaugeFamily, testNode } from "../support/control-rig.js";
import { QuotaClient } from "../support/quota-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/** Stands in every name that callers of the domain `mine` may not learn. */
const marker = "zzqx";

/** The same, misspelt: a suggestion of the nearest name would tell the right one. */
const near = "zzqy";

const rateLimits = (domain: string, key: string) => `
    - domain: ${domain}
      descriptors:
        - {key: ${key}, rate_limit: {name: ${key}-pace, unit: hour, requests_per_unit: 1}}`;

const service = (name: string, more: string) => `
    - name: ${name}-cart
      hosts: [${name}.example]
      usage: {model: {fixed: one}, from: none}
      concurrency: {law: gradient, sources: [envoyMetrics], feedback: [circuitBreakers]}
      admission:
        maxInFlight: 10
        queue: {size: 20}
        estimatedWait: {sigmoid: {midpoint: 1s, slope: 5}}
        gate: {}
      ${more}`;

const limitsOf = (domain: string, key: string) =>
  `rateLimit: {domain: ${domain}, descriptors: [[{header: x-user, as: ${key}}]]}`;

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: both}
spec:
  rateLimits:${rateLimits("mine", "own")}${rateLimits(`${marker}-pay`, `${marker}-user`)}
  quotas:
    - {name: own-quota, domain: mine, bucket: [{header: x-user, as: own}]}
    - name: ${marker}-quota
      domain: ${marker}-pay
      bucket: [{header: x-user, as: ${marker}-user}]
  services:${service("own", limitsOf("mine", "own"))}${service(
    marker,
    limitsOf(`${marker}-pay`, `${marker}-user`),
  )}${service(`${marker}-none`, "")}
  budgets:
    - {name: own-budget, services: [own-cart], amount: 10 calls, period: day}
    - {name: ${marker}-budget, services: [${marker}-cart], amount: 10 calls, period: day}
  waitingRooms:
    - {name: own-room, service: own-cart}
    - name: ${marker}-room
      service: ${marker}-cart
      estimatedWait: {sigmoid: {midpoint: 1h, slope: 0.01}}
      gate: {}
`;

const rootToken = "a token of who may see all domains";
const token = "a token of who may see their own";
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const key = (domain: string, name: string) => ({
  domain,
  entries: [{ key: name, value: "1" }],
});
const reason = "a test";
const files = [{ file: "a.yaml", text: policy.replaceAll(marker, near) }];

/**
 * What is asked of every method by somebody who may not see the marker: everything, and what is
 * near to the names of others, and these names themselves.
 *
 * @property isRead whether one who may see all domains is told the marker
 */
interface Row {
  readonly isRead: boolean;
  readonly requests: readonly unknown[];
}

/** Requests about a room that the caller may not see, with what else they need. */
const ofRooms = (fields: object): readonly unknown[] =>
  [near, marker].map((name) => ({ ...fields, room: `${name}-room` }));

/** Requests about a budget that the caller may not see. */
const ofBudgets = (request: (account: { readonly budget: string }) => object) =>
  [near, marker].map((name) => request({ budget: `${name}-budget` }));

const readers = [{}, { domain: `${near}-pay` }, { domain: `${marker}-pay` }];

const rows: Readonly<Record<string, Row>> = {
  ListRules: { isRead: true, requests: readers },
  GetKey: {
    isRead: false,
    requests: [
      { key: key(`${near}-pay`, "own") },
      { key: key(`${marker}-pay`, "own") },
      { key: key("mine", `${near}-user`) },
      { key: { ...key("mine", "own"), limitName: `${near}-user-pace` } },
    ],
  },
  TopKeys: { isRead: true, requests: readers },
  NearLimitKeys: { isRead: true, requests: readers },
  TailDecisions: { isRead: true, requests: readers },
  ResetKey: {
    isRead: false,
    requests: [
      { key: key(`${near}-pay`, "own"), reason },
      { key: key(`${marker}-pay`, "own"), reason },
    ],
  },
  SetOverride: {
    isRead: false,
    requests: [
      { override: { ...key(`${near}-pay`, "own"), isFrozen: true, reason } },
      { override: { ...key(`${marker}-pay`, "own"), isFrozen: true, reason } },
      { override: { ...key("mine", `${near}-user`), isFrozen: true, reason } },
    ],
  },
  DeleteOverride: {
    isRead: false,
    requests: [
      { domain: "mine", id: `${near}-override`, reason },
      { domain: "mine", id: `${marker}-override`, reason },
      { domain: `${near}-pay`, id: `${near}-override`, reason },
      { domain: `${marker}-pay`, id: `${marker}-override`, reason },
    ],
  },
  ListOverrides: { isRead: true, requests: [...readers, { pageSize: 1 }] },
  Explain: {
    isRead: false,
    requests: [
      { http: { host: `${near}.example` } },
      { http: { host: `${marker}.example` } },
      { http: { host: `${near}-none-cart` } },
      { http: { host: `${marker}-none-cart` } },
      { descriptors: { domain: `${near}-pay`, descriptors: [key("", "own")] } },
      { descriptors: { domain: `${marker}-pay`, descriptors: [key("", "own")] } },
      { http: { host: `${near}.example` }, candidate: files },
    ],
  },
  GetPolicy: { isRead: true, requests: [{}, { version: "0" }] },
  ListPolicies: { isRead: false, requests: [{}] },
  ValidatePolicy: { isRead: false, requests: [{ files }] },
  ApplyPolicy: { isRead: false, requests: [{ files, reason, dryRun: true }] },
  EnforcePolicy: { isRead: false, requests: [{ reason }] },
  RollBackPolicy: { isRead: false, requests: [{ reason, version: "0" }] },
  GetShadowReport: { isRead: false, requests: [{}] },
  TestPolicy: { isRead: false, requests: [{ files }] },
  ReplayLog: { isRead: false, requests: [{ files }, {}] },
  ListQuotas: { isRead: true, requests: readers },
  ListQuotaPools: { isRead: true, requests: [...readers, { quota: `${near}-quota` }] },
  ListRooms: { isRead: true, requests: [{}, ...ofRooms({})] },
  SetRoomOverride: { isRead: false, requests: ofRooms({ mode: "paused", reason }) },
  LetIn: { isRead: false, requests: ofRooms({ ticket: "x", reason }) },
  ExplainTicket: { isRead: false, requests: ofRooms({ ticket: "x" }) },
  ListBudgets: { isRead: true, requests: [{}] },
  ListBudgetAccounts: { isRead: false, requests: ofBudgets(({ budget }) => ({ budget })) },
  GetBudgetAccount: { isRead: false, requests: ofBudgets((account) => ({ account })) },
  TopUpBudget: {
    isRead: false,
    requests: ofBudgets((account) => ({
      account,
      amount: 1,
      expiresAt: "2999-01-01T00:00:00Z",
      reason,
      id: "t1",
    })),
  },
  DeleteTopUp: { isRead: false, requests: ofBudgets((one) => ({ ...one, id: "t1", reason })) },
  ListTopUps: { isRead: false, requests: [{}, ...ofBudgets((one) => one)] },
  RefundBudget: {
    isRead: false,
    requests: ofBudgets((account) => ({ account, amount: 1, reason, id: "r1" })),
  },
  ListUsage: {
    isRead: false,
    requests: [
      { fromDay: "2026-11-01", toDay: "2026-11-02" },
      ...ofBudgets((one) => ({ ...one, fromDay: "2026-11-01", toDay: "2026-11-02" })),
      { fromDay: "2026-11-01", toDay: "2026-11-02", service: `${near}-cart` },
      { fromDay: "2026-11-01", toDay: "2026-11-02", service: `${marker}-cart` },
    ],
  },
  ListServices: { isRead: true, requests: [{}] },
  GetFleet: { isRead: true, requests: [{}] },
  GetGateThresholds: {
    isRead: false,
    requests: [
      { service: `${near}-cart` },
      { service: `${marker}-cart` },
      { service: `room:${near}-room` },
      { service: `room:${marker}-room` },
    ],
  },
  SetGateThresholds: {
    isRead: false,
    requests: [{ service: `${near}-cart`, openBelow: 0.1, closeAbove: 0.2, reason }],
  },
  ListAudit: { isRead: true, requests: [{}, { pageSize: 1 }] },
  GetHistory: {
    isRead: true,
    requests: [
      {},
      { service: `${near}-cart` },
      { service: `${marker}-cart` },
      ...ofRooms({}),
      { rules: [{ domain: `${marker}-pay`, label: `${marker}-user` }] },
      { rules: [{ domain: `${near}-pay`, label: `${near}-user` }] },
    ],
  },
  GetFindings: { isRead: false, requests: [{}] },
};

const stage = useStage("file");
let port: number;
let httpPort: number;
let knowNodes: () => Promise<void>;

/** Asks in JSON, as text; a stream is read until nothing new comes. */
async function ask(name: string, request: unknown, as: string): Promise<string> {
  const path = [...adminMethods.keys()].find((one) => one.endsWith(`/${name}`));
  if (name === "TailDecisions") return tail(request, as);
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${wordOf(as)}` },
    body: JSON.stringify(request),
  });
  return response.text();
}

/** Tokens have no blanks. */
const wordOf = (text: string) => text.replaceAll(" ", "-");

/** What a follower sees of decisions of both domains, until it has seen one that is telling. */
async function tail(request: unknown, as: string): Promise<string> {
  const { limits } = adminClients(port, { token: wordOf(as) });
  const wanted = { ...Object(request), sampleRatio: 1, perSecondMax: 1_000 };
  let text = "";
  try {
    for await (const { decisions } of limits.tailDecisions(wanted)) {
      text += decisions.map(({ domain }) => domain).join();
      if (text.includes(as === token ? "mine" : marker)) break;
      await decide(`${marker}-pay`, `${marker}-user`);
      await decide("mine", "own");
    }
  } catch (thrown) {
    text += String(thrown);
  }
  return text;
}

async function decide(domain: string, name: string): Promise<void> {
  const body = JSON.stringify({ domain, descriptors: [{ entries: [{ key: name, value: "1" }] }] });
  await fetch(`http://127.0.0.1:${httpPort}/json`, { method: "POST", body });
}

beforeAll(async () => {
  const access = join(stage.folder, "access");
  // Their domains are told by hand: one of them the policy does not have.
  const own = `operator mine,${near}-pay token-sha256:${sha256(wordOf(token))} own`;
  await writeFile(access, `operator * token-sha256:${sha256(wordOf(rootToken))} root\n${own}\n`);
  const env = { HEADGATE_ADMIN_ACCESS: access, HEADGATE_ADMIN_CALLS_PER_SECOND: "10000" };
  const { app, port: adminPort } = await startAdminApp(stage, policy, env);
  [port, httpPort] = [adminPort, app.httpAddress?.port ?? 0];
  const { limits, fleet, quotas } = adminClients(port, { token: wordOf(rootToken) });
  for (const [domain, name, id] of [
    ["mine", "own", "own-override"],
    [`${marker}-pay`, `${marker}-user`, `${marker}-override`],
  ] as const) {
    const { entries } = key(domain, name);
    const effect = { case: "multiplier", value: 1 } as const;
    await limits.setOverride({ override: { id, domain, entries, effect, reason } });
    await limits.resetKey({ key: { domain, entries }, reason });
    for (let i = 0; i < 3; i += 1) await decide(domain, name);
  }
  const controlPort = app.controlAddress?.port ?? 0;
  const quotaClient = new QuotaClient(controlPort);
  const envoys = ["own", marker].map((name) => {
    const [node, client] = [testNode(`${name}-edge`), new ControlClient(controlPort)];
    client.subscribe(node);
    return { node, client, cluster: `${name}-cart` };
  });
  stage.atEnd(() => {
    quotaClient.close();
    for (const { client } of envoys) client.close();
  });
  quotaClient.open("own-edge").report("mine", [{ id: { quota: "own-quota", own: "1" } }]);
  const usage = { id: { quota: `${marker}-quota`, [`${marker}-user`]: "1" } };
  quotaClient.open(`${marker}-edge`).report(`${marker}-pay`, [usage]);
  await waitFor("pools are known", async () => {
    return (await quotas.listQuotaPools({})).pools.length === 2;
  });
  // Envoys that are silent are forgotten within seconds.
  knowNodes = async () => {
    const streams = envoys.map(({ node, client, cluster }) => {
      const gauge = gaugeFamily(`cluster.${cluster}.upstream_rq_active`, 1);
      return client.push({ identifier: { node }, envoyMetrics: [gauge] });
    });
    await waitFor("nodes are known", async () => {
      const { services } = await fleet.listServices({});
      const known = services.flatMap(({ shares }) => shares.map(({ node }) => node));
      return envoys.every(({ node }) => known.includes(node.id ?? ""));
    });
    for (const stream of streams) stream.cancel();
  };
});

beforeEach(() => knowNodes());

describe("a caller of one domain", () => {
  it("is asked about by a row for each method", () => {
    const names = [...adminMethods.values()].map(({ method }) => method.name);
    expect(Object.keys(rows)).toEqual(names);
  });

  it.each(Object.entries(rows))("learns no name of another from %s", async (name, row) => {
    for (const request of row.requests) {
      const text = await ask(name, request, token);
      expect(text.toLowerCase().includes(marker) ? text : "").toBe("");
    }
  });

  it.each(Object.entries(rows).filter(([, { isRead }]) => isRead))(
    "would be told by %s, as who sees all",
    async (name, row) => {
      const texts = await Promise.all(row.requests.map((one) => ask(name, one, rootToken)));
      expect(texts.join()).toContain(marker);
    },
  );

  // Ids that were unique over all domains told by a refusal which ones others had.
  it("gives an override an id that another domain has, and leaves that one alone", async () => {
    const id = "both-have-it";
    const set = async (override: object, as: string) =>
      JSON.parse(
        await ask("SetOverride", { override: { ...override, id, isFrozen: true, reason } }, as),
      );
    const hidden = key(`${marker}-pay`, `${marker}-user`);
    const theirs = (await set(hidden, rootToken)).override;
    const { override } = await set(key("mine", "own"), token);
    expect(override).toMatchObject({ id, domain: "mine" });
    expect(await ask("ListAudit", {}, token)).not.toContain(marker);
    const taken = { domain: "mine", id, expectedVersion: override.version, reason };
    expect(await ask("DeleteOverride", taken, token)).toBe("{}");
    const { overrides } = JSON.parse(
      await ask("ListOverrides", { domain: hidden.domain }, rootToken),
    );
    expect(overrides).toContainEqual(theirs);
  });

  it("sees what is theirs", async () => {
    expect(await ask("GetFleet", {}, token)).toContain('"own-cart"');
    expect(await ask("ListServices", {}, token)).toContain('"own-edge"');
    expect(await ask("GetGateThresholds", { service: "own-cart" }, token)).toContain("openBelow");
    expect(await ask("Explain", { http: { host: "own.example" } }, token)).toContain('"own-cart"');
    const suggested = await ask("GetGateThresholds", { service: "own-crt" }, token);
    expect(suggested).toContain('did you mean \\"own-cart\\"?');
  });

  it.each([
    ["Explain", { http: { host: `${marker}.example` } }, { http: { host: `${near}.example` } }],
    ["Explain", { http: { host: `${marker}-none-cart` } }, { http: { host: `${near}-none-cart` } }],
    ["GetGateThresholds", { service: `${marker}-cart` }, { service: `${near}-cart` }],
    [
      "DeleteOverride",
      { domain: "mine", id: `${marker}-override`, reason },
      { domain: "mine", id: `${near}-override`, reason },
    ],
    [
      "DeleteOverride",
      { domain: `${marker}-pay`, id: `${marker}-override`, reason },
      { domain: "nobody", id: `${near}-override`, reason },
    ],
    ["ListRules", { domain: `${marker}-pay` }, { domain: "nobody" }],
    [
      "GetBudgetAccount",
      { account: { budget: `${marker}-budget` } },
      { account: { budget: `${near}-budget` } },
    ],
    ["ListBudgetAccounts", { budget: `${marker}-budget` }, { budget: `${near}-budget` }],
    ["TopKeys", { domain: `${marker}-pay`, ruleLabel: "x" }, { domain: "nobody" }],
  ])("is told the same by %s of what is hidden and what is not there", async (name, one, other) => {
    expect(await ask(name, one, token)).toBe(await ask(name, other, token));
  });
});
