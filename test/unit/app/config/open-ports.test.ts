import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";

function load(env: Readonly<Record<string, string>>) {
  return loadConfig({ flags: {}, env: { HEADGATE_POLICY: "policy.yaml", ...env } });
}

const loopback = {
  HOST: "127.0.0.1",
  GRPC_HOST: "127.0.0.1",
  HEADGATE_CONTROL_ADDR: "localhost:18000",
};

const all = "GRPC_HOST, HEADGATE_CONTROL_ADDR, and HOST (POST /json) without";

const tls = {
  GRPC_SERVER_USE_TLS: "true",
  GRPC_SERVER_TLS_CERT: "/tls.crt",
  GRPC_SERVER_TLS_KEY: "/tls.key",
};

const mutualTls = { ...tls, GRPC_CLIENT_TLS_CACERT: "/ca.crt" };

describe("checkOpenPorts()", () => {
  it.each([
    ["all by default", {}, all],
    ["with a certificate of the server's alone", tls, all],
    [
      "decisions as JSON",
      { ...loopback, HOST: "0.0.0.0" },
      "HOST (POST /json) without a client certificate",
    ],
    [
      "gRPC without them",
      { HEADGATE_JSON: "false" },
      "GRPC_HOST and HEADGATE_CONTROL_ADDR without",
    ],
    ["gRPC", { ...loopback, GRPC_HOST: "10.0.0.1" }, "GRPC_HOST without a client certificate"],
    [
      "the control port",
      { ...loopback, HEADGATE_CONTROL_ADDR: ":18000" },
      "HEADGATE_CONTROL_ADDR without a client certificate",
    ],
    [
      "the control port beside a socket",
      { HOST: "::1", GRPC_UDS: "/run/headgate.sock" },
      "HEADGATE_CONTROL_ADDR without a client certificate",
    ],
  ])("tells which ports anybody may reach: %s", (_, env, words) => {
    const loaded = load(env);
    if (loaded.kind !== "config") throw new Error("a wrong configuration");
    expect(loaded.config.openPorts).toContain(words);
    expect(loaded.config.openPorts).toContain("GRPC_CLIENT_TLS_CACERT");
    const strict = load({ ...env, HEADGATE_REQUIRE_CLIENT_CERTIFICATES: "true" });
    expect(strict).toEqual({ kind: "problems", problems: [expect.stringContaining(words)] });
  });

  it.each([
    ["loopback", loopback],
    [
      "a socket, and neither a control port nor JSON",
      { GRPC_UDS: "/run/h.sock", HEADGATE_CONTROL_ADDR: "", HEADGATE_JSON: "false" },
    ],
    ["clients' certificates", mutualTls],
  ])("says nothing of %s", (_, env) => {
    for (const more of [{}, { HEADGATE_REQUIRE_CLIENT_CERTIFICATES: "true" }]) {
      const loaded = load({ ...env, ...more });
      expect(loaded).toMatchObject({ kind: "config" });
      expect(loaded.kind === "config" && loaded.config.openPorts).toBeUndefined();
    }
  });
});
