import { describe, expect, it } from "vitest";
import { type LoadedConfig, loadConfig } from "../../../../src/app/config/config.js";
import {
  defaultMessageBytes,
  pairsMax,
  type XdsChoice,
} from "../../../../src/app/config/xds-choice.js";

type Env = Readonly<Record<string, string>>;

function load(env: Env): LoadedConfig {
  return loadConfig({ flags: {}, env: { CONFIG_TYPE: "GRPC_XDS_SOTW", ...env } });
}

function choiceOf(env: Env): XdsChoice {
  const loaded = load(env);
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  if (loaded.config.xds === undefined) throw new Error("files");
  return loaded.config.xds;
}

function problemsOf(env: Env): readonly string[] {
  const loaded = load(env);
  return loaded.kind === "problems" ? loaded.problems : [];
}

function noticesOf(env: Env): readonly string[] {
  const loaded = load(env);
  return loaded.kind === "config" ? loaded.config.notices : [];
}

describe("the control port", () => {
  const portOf = (env: Env, flags = {}): number | undefined => {
    const loaded = loadConfig({ flags, env });
    if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
    return loaded.config.controlAddress?.port;
  };

  it("stays closed for a configuration of envoyproxy/ratelimit and nothing of ours", () => {
    expect(portOf({ RUNTIME_ROOT: "/data", USE_STATSD: "false" })).toBeUndefined();
    expect(portOf({ CONFIG_TYPE: "GRPC_XDS_SOTW" })).toBeUndefined();
    expect(portOf({ RUNTIME_ROOT: "/data", HEADGATE_CONTROL_ADDR: ":18000" })).toBe(18_000);
    expect(portOf({ HEADGATE_POLICY: "/policy.yaml" })).toBe(18_000);
    expect(portOf({}, { policy: "/policy.yaml" })).toBe(18_000);
    expect(portOf({ RUNTIME_ROOT: "/data", HEADGATE_REPLICAS: "3" })).toBe(18_000);
  });

  it("is never the control plane of its own process", () => {
    const own = { CONFIG_TYPE: "GRPC_XDS_SOTW", HEADGATE_REPLICAS: "3" };
    expect(portOf(own)).toBeUndefined();
    expect(noticesOf(own).join()).toContain("own control port");
    const named = { ...own, HEADGATE_CONTROL_ADDR: ":18000" };
    expect(problemsOf(named).join()).toContain("own control port");
    expect(problemsOf({ ...named, CONFIG_GRPC_XDS_SERVER_URL: "[::1]:18000" })).toHaveLength(1);
    expect(portOf({ ...named, HEADGATE_CONTROL_ADDR: ":18001" })).toBe(18_001);
    expect(portOf({ ...named, CONFIG_GRPC_XDS_SERVER_URL: "gateway:18000" })).toBe(18_000);
  });

  it("stands beside a control plane on this machine's loopback, where it listens elsewhere", () => {
    const plane = { CONFIG_TYPE: "GRPC_XDS_SOTW", CONFIG_GRPC_XDS_SERVER_URL: "localhost:18000" };
    const at = (address: string) => ({ ...plane, HEADGATE_CONTROL_ADDR: address });
    expect(portOf(at("10.0.0.1:18000"))).toBe(18_000);
    for (const own of ["0.0.0.0:18000", "[::]:18000", "127.0.0.1:18000"]) {
      expect(problemsOf(at(own)), own).toHaveLength(1);
    }
  });
});

describe("chooseXds()", () => {
  it("takes files unless a control plane is asked for", () => {
    for (const env of [{}, { CONFIG_TYPE: "FILE" }, { CONFIG_TYPE: "file" }]) {
      const loaded = loadConfig({ flags: {}, env });
      expect(loaded.kind === "config" && loaded.config.xds).toBeUndefined();
    }
    expect(problemsOf({ CONFIG_TYPE: "GRPC_XDS_DELTA" })).toEqual([
      "CONFIG_TYPE must be one of file, grpc_xds_sotw",
    ]);
  });

  it("has the defaults of envoyproxy/ratelimit, and waits that grow", () => {
    expect(choiceOf({})).toEqual({
      address: "localhost:18000",
      nodeId: "default",
      nodeMetadata: {},
      headers: new Map(),
      connectRetryMs: 3_000,
      backoff: { initialMs: 10_000, maxMs: 60_000, growthFactor: 2, isJittered: true },
      messageBytesMax: defaultMessageBytes,
    });
  });

  it("reads every setting", () => {
    const choice = choiceOf({
      CONFIG_GRPC_XDS_SERVER_URL: "envoy-gateway:18001",
      CONFIG_GRPC_XDS_NODE_ID: "envoy-ratelimit",
      CONFIG_GRPC_XDS_NODE_METADATA: "zone=a,empty=,two=b=c",
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: "Authorization: Bearer a:b,x-team:edge",
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: "1s",
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "500ms",
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: "1m30s",
      XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "1.5",
      XDS_CLIENT_BACKOFF_JITTER: "false",
      XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: "1000",
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: "/certs/tls.crt",
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: "/certs/tls.key",
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: "/certs/ca.crt",
      CONFIG_GRPC_XDS_SERVER_TLS_SAN: "control-plane",
    });
    expect(choice).toEqual({
      address: "envoy-gateway:18001",
      nodeId: "envoy-ratelimit",
      nodeMetadata: { zone: "a", empty: "", two: "b=c" },
      headers: new Map([
        ["authorization", "Bearer a:b"],
        ["x-team", "edge"],
      ]),
      connectRetryMs: 1_000,
      backoff: { initialMs: 500, maxMs: 90_000, growthFactor: 1.5, isJittered: false },
      messageBytesMax: 1_000,
      tls: {
        authority: { setting: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", path: "/certs/ca.crt" },
        identity: {
          certificate: { setting: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", path: "/certs/tls.crt" },
          key: { setting: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", path: "/certs/tls.key" },
        },
        serverName: "control-plane",
      },
    });
  });

  it("reads a factor that would never let waits grow as growth by 2", () => {
    for (const factor of ["0.5", "0", "1"]) {
      const { backoff } = choiceOf({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: factor });
      expect(backoff.growthFactor).toBe(2);
    }
    expect(problemsOf({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: "-1" })).toEqual([
      "XDS_CLIENT_BACKOFF_RANDOM_FACTOR must be a number from 0 to 100",
    ]);
  });

  it("keeps headers out of the configuration's own values: they may be credentials", () => {
    const loaded = load({ CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: "a:secret" });
    expect(loaded.kind === "config" && "xdsHeaders" in loaded.config).toBe(false);
  });

  it.each([
    ["no pair", "secret"],
    ["no name", ":secret"],
    ["a name of gRPC's own", "grpc-timeout:secret"],
    ["a name for bytes", "token-bin:secret"],
    ["a pseudo header's name", " :path:secret"],
    ["a line break in a value", "a:secret\nb"],
    ["a letter that is not ASCII", "a:secr\u00e9t"],
  ])("refuses a header with %s, without showing it", (_what, text) => {
    const [problem, ...more] = problemsOf({
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `x:1,${text}`,
    });
    expect(problem).toContain(
      "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: header number 2 is invalid",
    );
    expect(problem).not.toContain("secr");
    expect(more).toEqual([]);
  });

  it("tells of metadata that says nothing, and takes the rest", () => {
    const env = { CONFIG_GRPC_XDS_NODE_METADATA: "zone:a,b=c" };
    expect(choiceOf(env).nodeMetadata).toEqual({ b: "c" });
    expect(noticesOf(env)).toEqual([
      'CONFIG_GRPC_XDS_NODE_METADATA contains parts without "=", which are ' +
        "ignored: write name=value.",
    ]);
  });

  it(`takes ${pairsMax} pairs and no more`, () => {
    const pairs = (count: number, mark: string) =>
      Array.from({ length: count }, (_, i) => `n${i}${mark}v`).join(",");
    const names = ["CONFIG_GRPC_XDS_NODE_METADATA", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"];
    const env = (count: number): Env =>
      Object.fromEntries(names.map((name, i) => [name, pairs(count, i === 0 ? "=" : ":")]));
    expect(problemsOf(env(pairsMax))).toEqual([]);
    expect(problemsOf(env(pairsMax + 1))).toEqual([
      `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS contains more than ${pairsMax} pairs`,
      `CONFIG_GRPC_XDS_NODE_METADATA contains more than ${pairsMax} pairs`,
    ]);
  });

  it.each(["", "http://plane:18000", "GRPC://plane:18000", "a b"])(
    "refuses the address %j",
    (address) => {
      expect(problemsOf({ CONFIG_GRPC_XDS_SERVER_URL: address })).toEqual([
        "CONFIG_GRPC_XDS_SERVER_URL must be host:port, without a scheme before it",
      ]);
    },
  );

  it("takes what gRPC resolves as an address", () => {
    for (const address of [
      "plane:18000",
      "dns:///plane:18000",
      "[::1]:18000",
      "unix:/run/x.sock",
    ]) {
      expect(choiceOf({ CONFIG_GRPC_XDS_SERVER_URL: address }).address).toBe(address);
    }
  });

  it("refuses half a pair, and a file beside a control plane", () => {
    const env = {
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: "/certs/tls.key",
      HEADGATE_POLICY: "policy.yaml",
    };
    expect(problemsOf(env)).toEqual([
      expect.stringContaining("HEADGATE_POLICY (--policy) and CONFIG_TYPE=GRPC_XDS_SOTW exclude"),
      expect.stringContaining("_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY need each other"),
    ]);
  });

  it("tells that TLS is off where its files are named", () => {
    const env = { CONFIG_GRPC_XDS_SERVER_TLS_CACERT: "/certs/ca.crt" };
    expect(choiceOf(env).tls).toBeUndefined();
    expect(noticesOf(env)).toEqual([expect.stringContaining("so the connection is plaintext")]);
  });
});
