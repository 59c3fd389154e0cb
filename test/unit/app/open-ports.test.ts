import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/app/config.js";

function load(env: Readonly<Record<string, string>>) {
  return loadConfig({ flags: {}, env });
}

const loopback = { GRPC_HOST: "127.0.0.1", HEADGATE_CONTROL_ADDR: "localhost:18000" };

const tls = {
  GRPC_SERVER_USE_TLS: "true",
  GRPC_SERVER_TLS_CERT: "/tls.crt",
  GRPC_SERVER_TLS_KEY: "/tls.key",
};

const mutualTls = { ...tls, GRPC_CLIENT_TLS_CACERT: "/ca.crt" };

describe("checkOpenPorts()", () => {
  it.each([
    ["both by default", {}, "GRPC_HOST and HEADGATE_CONTROL_ADDR can be"],
    ["with a certificate of the server's alone", tls, "GRPC_HOST and HEADGATE_CONTROL_ADDR can"],
    ["gRPC", { ...loopback, GRPC_HOST: "10.0.0.1" }, "GRPC_HOST can be reached"],
    [
      "the control port",
      { ...loopback, HEADGATE_CONTROL_ADDR: ":18000" },
      "HEADGATE_CONTROL_ADDR can be reached",
    ],
    [
      "the control port beside a socket",
      { GRPC_UDS: "/run/headgate.sock" },
      "HEADGATE_CONTROL_ADDR can be reached",
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
    ["a socket, and no control port", { GRPC_UDS: "/run/h.sock", HEADGATE_CONTROL_ADDR: "" }],
    ["clients' certificates", mutualTls],
  ])("says nothing of %s", (_, env) => {
    for (const more of [{}, { HEADGATE_REQUIRE_CLIENT_CERTIFICATES: "true" }]) {
      const loaded = load({ ...env, ...more });
      expect(loaded).toMatchObject({ kind: "config" });
      expect(loaded.kind === "config" && loaded.config.openPorts).toBeUndefined();
    }
  });
});
