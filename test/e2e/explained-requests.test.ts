import { describe, expect, it } from "vitest";
import { rateLimitEntries } from "../../src/generate/envoy/http/rate-limit-actions.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { adminClients } from "../support/admin.js";
import type { Json } from "../support/envoy-config.js";
import { plain, testContext } from "../support/envoy-parts.js";
import { startHostedGateway } from "../support/gateway.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const keys = ["remote_address", "masked_remote_address", "user", "word", "method", "kind"];

const rules = keys.map((key) => `{key: ${key}, rate_limit: {unit: year, requests_per_unit: 9}}`);

/** Each descriptor is one part, so that keys tell what became of it. */
const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: tests}
spec:
  rateLimits:
    - domain: edge
      descriptors: [${rules.join(", ")}]
  services:
    - name: upstream
      hosts: [shop.example]
      rateLimit:
        domain: edge
        descriptors:
          - [remote_address]
          - [{maskedRemoteAddress: {v4: 16, v6: 48}}]
          - [{header: x-user, as: user}]
          - [{query: q, as: word}]
          - [{header: ":method", as: method}]
          - [{headerMatch: [{name: x-vip, exact: "yes"}], as: kind, value: paid}]
          - - {headerMatch: [{name: x-vip, present: true}], as: kind, value: no, expectMatch: false}
`;

const requests = [
  { path: "/", headers: {}, remoteAddress: "10.1.2.3" },
  { path: "/a?q=a+b", headers: { "x-user": "" }, remoteAddress: "2001:db8:0:0:1::5" },
  { path: "/a?q=a%2Bb%20c&q=d", headers: { "x-user": "ann" }, remoteAddress: "2001:db8::1" },
  { path: "/a?q=", headers: { "x-vip": "yes" }, remoteAddress: "2001:db8::1" },
  { path: "/a?Q=r&q", headers: { "x-vip": "" }, remoteAddress: "::1" },
  { path: "/a??q=1", headers: { "x-user": "a, b" }, remoteAddress: "::1", method: "DELETE" },
  { path: "/a?x=1&q=%zz%4", headers: { "x-vip": "no" }, remoteAddress: "10.1.9.9" },
] as const;

describe("an explained request", () => {
  it("has the keys that a real Envoy asks for", async () => {
    const gateway = await startHostedGateway(stage, {
      policy,
      headgateEnvs: [{ HEADGATE_ADMIN_OPEN: "true" }],
      envoy: { rateLimits: generatedActions() },
    });
    const { output } = gateway.headgates[0];
    const digits = [...output.matchAll(/"adminListening".*?"port":(\d+)/g)].at(-1)?.[1];
    const { limits } = adminClients(Number(digits));
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const explained = new Map<string, number>();
    for (const { path, headers, remoteAddress, ...rest } of requests) {
      const method = "method" in rest ? rest.method : "GET";
      const value = { host: "shop.example", path, method, headers, remoteAddress };
      const { current } = await limits.explain({ request: { case: "http", value } });
      for (const { entries } of current?.descriptors ?? []) {
        const text = textOf(entries);
        explained.set(text, (explained.get(text) ?? 0) + 1);
      }
      // Who sends this last is the caller to an Envoy that trusts what is before it.
      const sent = { ...headers, host: "shop.example", "x-forwarded-for": remoteAddress };
      const { status } = await http.send({ port: gateway.envoy.port, path, method, headers: sent });
      expect(status).toBe(200);
    }
    const asked = await waitFor("all calls are seen", async () => {
      const top = await limits.topKeys({ count: 100, domain: "edge" });
      const counts = top.keys.map(
        ({ key, count }) => [textOf(key?.entries), Number(count)] as const,
      );
      return counts.length < explained.size ? undefined : new Map(counts);
    });
    expect(asked).toEqual(explained);
  });
});

/** What the policy's service makes Envoy ask, as it is generated. */
function generatedActions(): readonly Json[] {
  const parsed = parsePolicy([{ file: "policy.yaml", text: policy }]);
  const service = parsed.kind === "problems" ? undefined : parsed.services[0];
  if (service === undefined) throw new Error("the policy of this test is wrong");
  const { context } = testContext();
  return rateLimitEntries(service, context).map((tree) => plain(tree) as Json);
}

function textOf(entries: readonly { readonly key: string; readonly value: string }[] = []): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(",");
}
