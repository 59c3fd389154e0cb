import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import { loopTimesFor } from "../../../../src/core/feedback/feedback-settings.js";
import { pushTimesFor } from "../../../../src/rpc/control/layer-pusher.js";
import { configOf, type Env } from "../../../support/configured-store.js";

describe("HEADGATE_LAYER_TTL_MS", () => {
  it.each([
    [undefined, 15_000],
    ["3000", 3_000],
    ["3600000", 3_600_000],
  ])("of %j is %j", (text, ttlMs) => {
    const env = text === undefined ? {} : { HEADGATE_LAYER_TTL_MS: text };
    expect(configOf(env).layerTtlMs).toBe(ttlMs);
  });

  it.each(["2999", "3600001", "15s"])("is refused as %j", (text) => {
    expect(loadConfig({ flags: {}, env: { HEADGATE_LAYER_TTL_MS: text } })).toEqual({
      kind: "problems",
      problems: ["HEADGATE_LAYER_TTL_MS must be a whole number from 3000 to 3600000"],
    });
  });

  it("is short enough for two lost refreshes of a layer", () => {
    const { layerTtlMs } = configOf({ HEADGATE_LAYER_TTL_MS: "4000" });
    expect(pushTimesFor(layerTtlMs)).toMatchObject({ ttlMs: 4_000, refreshMs: 1_333 });
    expect(loopTimesFor(layerTtlMs)).toMatchObject({ ttlMs: 4_000, nodeLeaseMs: 4_000 });
  });
});

const own = { HEADGATE_POLICY: "policy.yaml" };

describe("HEADGATE_CONTROL_ADDR", () => {
  it.each([
    [undefined, { host: "0.0.0.0", port: 18_000 }],
    [":0", { host: "0.0.0.0", port: 0 }],
    ["127.0.0.1:18001", { host: "127.0.0.1", port: 18_001 }],
    ["[::1]:18001", { host: "::1", port: 18_001 }],
    ["", undefined],
  ])("of %j is %j", (text, address) => {
    // Without any setting of ours there is none: that is envoyproxy/ratelimit's configuration.
    const env = text === undefined ? own : { HEADGATE_CONTROL_ADDR: text };
    expect(configOf(env).controlAddress).toEqual(address);
  });

  it.each(["18000", "tcp://10.0.0.1:18000", ":65536", "host:"])("is refused as %j", (text) => {
    expect(loadConfig({ flags: {}, env: { HEADGATE_CONTROL_ADDR: text } })).toEqual({
      kind: "problems",
      problems: ["HEADGATE_CONTROL_ADDR must be an address like :9090 or 127.0.0.1:9090"],
    });
  });

  it("is none of the names that Kubernetes makes of a Service called headgate-control", () => {
    const link = "tcp://10.0.0.1:18000";
    const env = { HEADGATE_CONTROL_PORT: link, HEADGATE_CONTROL_PORT_18000_TCP_ADDR: "10.0.0.1" };
    expect(configOf(env).controlAddress).toBeUndefined();
    expect(configOf({ ...own, ...env }).controlAddress).toEqual({ host: "0.0.0.0", port: 18_000 });
  });
});

describe("HEADGATE_CONTROL_NODES", () => {
  const rules = { HEADGATE_CONTROL_NODES: "spiffe://shop/{node} {node}" };
  const tls = {
    GRPC_SERVER_USE_TLS: "true",
    GRPC_SERVER_TLS_CERT: "/certs/tls.crt",
    GRPC_SERVER_TLS_KEY: "/certs/tls.key",
  };

  it("is read, and needs certificates of clients", () => {
    expect(configOf({ HEADGATE_CONTROL_NODES: "" }).nodeRules).toBeUndefined();
    const env = { ...rules, ...tls, GRPC_CLIENT_TLS_CACERT: "/certs/ca.crt" };
    expect(configOf(env).nodeRules).toHaveLength(1);
    const problemsOf = (flagged: Env) => loadConfig({ flags: {}, env: flagged });
    expect(problemsOf(rules)).toMatchObject({
      problems: [expect.stringContaining("HEADGATE_CONTROL_NODES needs GRPC_SERVER_USE_TLS")],
    });
    expect(problemsOf({ ...rules, ...tls })).toMatchObject({
      problems: [
        expect.stringContaining("HEADGATE_CONTROL_NODES is set, but GRPC_CLIENT_TLS_CACERT is not"),
      ],
    });
  });

  it("says which rule is wrong, and nothing of it", () => {
    const env = { HEADGATE_CONTROL_NODES: "spiffe://shop/a a, secret" };
    const reported = "HEADGATE_CONTROL_NODES must be rules NAME NODE [CLUSTER]; rule 2 has no NODE";
    expect(loadConfig({ flags: {}, env })).toEqual({ kind: "problems", problems: [reported] });
  });
});

describe("HEADGATE_CONTROL_IDENTITY_PERCENT_MAX", () => {
  it.each([
    [undefined, 50],
    ["1", 1],
    ["100", 100],
  ])("of %j is %j", (text, percent) => {
    const env = text === undefined ? {} : { HEADGATE_CONTROL_IDENTITY_PERCENT_MAX: text };
    expect(configOf(env).identityPercentMax).toBe(percent);
  });
});
