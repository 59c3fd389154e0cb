import { describe, expect, it } from "vitest";
import { type Config, loadConfig } from "../../../../src/app/config/config.js";

type Env = Readonly<Record<string, string>>;

function configOf(env: Env): Config {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

function problemsOf(env: Env): readonly string[] {
  const loaded = loadConfig({ flags: {}, env });
  return loaded.kind === "problems" ? loaded.problems : [];
}

const server: Env = {
  GRPC_SERVER_USE_TLS: "true",
  GRPC_SERVER_TLS_CERT: "/certs/tls.crt",
  GRPC_SERVER_TLS_KEY: "/certs/tls.key",
};

describe("chooseTls()", () => {
  it("serves plaintext by default, and where every name is empty", () => {
    expect(configOf({}).tls).toBeUndefined();
    const empty = Object.fromEntries(Object.keys(server).map((name) => [name, ""]));
    expect(configOf({ ...empty, GRPC_SERVER_USE_TLS: "false" }).tls).toBeUndefined();
  });

  it("asks no client for a certificate without authorities", () => {
    expect(configOf(server).tls).toEqual({
      certificate: { setting: "GRPC_SERVER_TLS_CERT", path: "/certs/tls.crt" },
      key: { setting: "GRPC_SERVER_TLS_KEY", path: "/certs/tls.key" },
    });
  });

  it("takes clients' authorities and their name", () => {
    const env = { GRPC_CLIENT_TLS_CACERT: "/certs/ca.crt", GRPC_CLIENT_TLS_SAN: "edge.shop" };
    expect(configOf({ ...server, ...env }).tls).toMatchObject({
      clientAuthority: { setting: "GRPC_CLIENT_TLS_CACERT", path: "/certs/ca.crt" },
      clientSan: { kind: "dns", value: "edge.shop" },
    });
  });

  it("takes the name that Envoy Gateway sets, and the reference's before it", () => {
    const gateway = { ...server, GRPC_SERVER_TLS_CA_CERT: "/certs/ca.crt" };
    expect(configOf(gateway).tls?.clientAuthority).toEqual({
      setting: "GRPC_SERVER_TLS_CA_CERT",
      path: "/certs/ca.crt",
    });
    const both = { ...gateway, GRPC_CLIENT_TLS_CACERT: "/other.crt" };
    expect(configOf(both).tls?.clientAuthority?.path).toBe("/other.crt");
  });

  it("names everything that is missing", () => {
    expect(problemsOf({ GRPC_SERVER_USE_TLS: "true" })).toEqual([
      "GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_CERT is not set; set it to a PEM file",
      "GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_KEY is not set; set it to a PEM file",
    ]);
  });

  it.each(["GRPC_CLIENT_TLS_CACERT", "GRPC_SERVER_TLS_CA_CERT", "GRPC_CLIENT_TLS_SAN"])(
    "refuses %s without TLS: no client would be checked",
    (name) => {
      expect(problemsOf({ [name]: "edge.shop" })).toEqual([
        `${name} needs GRPC_SERVER_USE_TLS, because no client is verified without it; ` +
          "set it to true, or remove the other",
      ]);
    },
  );

  it("refuses a name of clients without authorities for them", () => {
    const [problem, ...others] = problemsOf({ ...server, GRPC_CLIENT_TLS_SAN: "edge.shop" });
    expect(problem).toContain("GRPC_CLIENT_TLS_SAN is set, but GRPC_CLIENT_TLS_CACERT is not");
    expect(others).toEqual([]);
  });

  it("says that a certificate is not used without TLS", () => {
    const { notices } = configOf({ GRPC_SERVER_TLS_CERT: "/certs/tls.crt" });
    expect(notices).toEqual([expect.stringContaining("gRPC is served in plaintext")]);
  });

  it("reports what is wrong with the store beside what is wrong with TLS", () => {
    const problems = problemsOf({ BACKEND_TYPE: "redis", GRPC_SERVER_USE_TLS: "true" });
    expect(problems).toHaveLength(3);
  });
});
