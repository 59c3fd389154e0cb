import { diagnose } from "../../src/doctor/diagnose.js";
import type { Diagnostic, DoctorInput, DoctorPolicy } from "../../src/doctor/diagnostic.js";
import { type EnvoyDump, readConfigDump } from "../../src/doctor/envoy-dump.js";
import { parsePlain } from "../../src/doctor/json-access.js";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { isPlainMap, type PlainMap, plainTree } from "../../src/generate/base/plain-tree.js";
import { generate } from "../../src/generate/generate.js";
import { policyOf } from "./generated.js";

/** A value of JSON that tests take apart and put together. */
export type Dumped = { [name: string]: Dumped } & Dumped[] & string;

/** The policy that doctor's unit tests compare with. */
export const doctorPolicyText = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: tests}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: plan
          value: free
          descriptors: [{key: user, rate_limit: {unit: second, requests_per_unit: 10}}]
  services:
    - name: orders
      upstream: {address: 10.0.0.1, port: 8080}
      circuitBreakers: {maxRequests: 100}
      rateLimit:
        domain: shop
        descriptors: [[{value: free, as: plan}, {header: x-user, as: user}]]
      concurrency:
        law: vegas
        limits: {min: 5, initial: 20, max: 40}
        feedback: [circuitBreakers]
      admission: {maxInFlight: 50, queue: {maxWait: 500ms, size: 20}}
      usage: {model: body, from: body}
  budgets:
    - name: user-day
      per: [{header: x-user}]
      amount: 1_000_000 tokens
      period: day
      over: {fallback: {header: {x-tier: slow}}}
`;

/** The generated edge proxy of the policy. */
export function doctorBootstrap(text = doctorPolicyText): Dumped {
  const made = policyOf([{ file: "policy.yaml", text }]);
  const { documents } = generate(
    { target: "envoy", policy: made, options: defaultGenerateOptions },
    [],
  );
  const edge = documents.find(({ path }) => path === "edge/envoy.yaml");
  const tree = edge?.parts[0];
  if (tree === undefined) throw new Error("no edge proxy was generated");
  return JSON.parse(JSON.stringify(plainTree(tree)));
}

/** What Envoy would answer to /config_dump for it. */
export function generatedDump(text = doctorPolicyText): Dumped {
  const bootstrap = doctorBootstrap(text);
  const { static_resources: own } = bootstrap;
  const part = (name: string, fields: object): object => ({
    "@type": `type.googleapis.com/envoy.admin.v3.${name}`,
    ...fields,
  });
  const dump = {
    configs: [
      part("BootstrapConfigDump", { bootstrap }),
      part("ClustersConfigDump", {
        static_clusters: own?.["clusters"]?.map((cluster) => ({ cluster })),
      }),
      part("ListenersConfigDump", {
        static_listeners: own?.["listeners"]?.map((listener) => ({ listener })),
      }),
    ],
  };
  // Parts that stand in two places of a dump are not the same object.
  return JSON.parse(JSON.stringify(dump));
}

/** Reads a dump; throws where it is none. */
export function dumpOf(dump: unknown): EnvoyDump {
  const read = readConfigDump(JSON.stringify(dump));
  if (read.kind === "unreadable") throw new Error(read.why);
  return read.dump;
}

/** Statistics of an Envoy with which all is well. */
export const rightStats: Readonly<Record<string, number>> = {
  "cluster.headgate.membership_healthy": 1,
  "cluster.headgate.membership_total": 1,
  "cluster.orders.upstream_rq_active": 3,
  "cluster.orders.ratelimit.headgate.ok": 990,
  "cluster.orders.ratelimit.headgate.over_limit": 10,
  "http.ingress.ext_proc.headgate.streams_started": 1_000,
  "runtime.control_plane.connected_state": 1,
  "runtime.update_time": 1_000_000,
};

/** A policy as the doctor compares it. */
export function doctorPolicyOf(text: string): DoctorPolicy {
  const made = policyOf([{ file: "policy.yaml", text }]);
  const { hash: version, domains, rules, services, quotas, waitingRooms, budgets } = made;
  return { version, domains: new Set(domains), rules, services, quotas, waitingRooms, budgets };
}

/** What is read of a healthy pair; `wrong` changes it. */
export function doctorInputOf(wrong: Partial<DoctorInput> = {}): DoctorInput {
  const policy = doctorPolicyOf(doctorPolicyText);
  return {
    dump: dumpOf(generatedDump()),
    deprecated: [],
    stats: [new Map(Object.entries(rightStats))],
    runtime: undefined,
    envoyVersion: "1.40.0",
    policy,
    headgate: {
      status: "ready",
      storeState: "ok",
      policyVersion: policy.version,
      lastReloadProblem: false,
      version: "1.0.0",
      totals: new Map([["headgate_requests_total", 1_000]]),
      decisionMsP99: 2,
    },
    headgateFailure: undefined,
    clocks: { envoy: { aheadMs: 0, errorMs: 500 }, headgate: { aheadMs: 100, errorMs: 500 } },
    envoyNowMs: 1_005_000,
    ownVersion: "1.0.0",
    cluster: undefined,
    ...wrong,
  };
}

/** What is found, without what is right. */
export function findingsOf(
  evidence: DoctorInput,
): readonly (Diagnostic & { readonly kind: "finding" })[] {
  return diagnose(evidence).filter((look) => look.kind === "finding");
}

/** A value as the doctor reads it. */
export function plainMapOf(value: unknown): PlainMap {
  const read = parsePlain(JSON.stringify(value));
  if (read.kind === "unreadable" || !isPlainMap(read.value)) throw new Error("no map");
  return read.value;
}
