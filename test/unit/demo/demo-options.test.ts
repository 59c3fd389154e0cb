import { describe, expect, it } from "vitest";
import { demoFlagRows, parseDemoOptions } from "../../../src/demo/demo-options.js";

describe("parseDemoOptions()", () => {
  it("takes the ports that people expect when nothing is said", () => {
    expect(parseDemoOptions({ flags: {}, env: {} })).toEqual({
      kind: "options",
      options: {
        envoyPort: 10_000,
        grpcPort: 8_081,
        httpPort: 8_080,
        upstreamPort: 0,
        example: "demo",
        traffic: "shown",
        mayInstall: true,
      },
    });
  });

  it("takes flags before the environment", () => {
    const env = { ENVOY_PORT: "1", GRPC_PORT: "2", PORT: "3", UPSTREAM_PORT: "4" };
    const flags = { envoyPort: "5", policy: "p.yaml", waitingRoom: true };
    const quiet = { ...flags, quietTraffic: true, install: false };
    expect(parseDemoOptions({ flags: quiet, env })).toMatchObject({
      options: {
        envoyPort: 5,
        grpcPort: 2,
        httpPort: 3,
        upstreamPort: 4,
        example: "waiting-room",
        policy: "p.yaml",
        traffic: "quiet",
        mayInstall: false,
      },
    });
  });

  it("shows the three layers, and one example at a time", () => {
    const flags = { threeLayers: true };
    expect(parseDemoOptions({ flags, env: {} })).toMatchObject({
      options: { example: "three-layers" },
    });
    expect(parseDemoOptions({ flags: { llm: true }, env: {} })).toMatchObject({
      options: { example: "llm" },
    });
    const both = { threeLayers: true, waitingRoom: true };
    expect(parseDemoOptions({ flags: both, env: {} })).toEqual({
      kind: "problems",
      problems: ["--waiting-room and --three-layers are two examples: give one of them"],
    });
  });

  it("makes no traffic when told so, quiet or not", () => {
    const flags = { traffic: false, quietTraffic: true };
    expect(parseDemoOptions({ flags, env: {} })).toMatchObject({ options: { traffic: "none" } });
  });

  it("tells every wrong port at once, by the name it was set with", () => {
    const parsed = parseDemoOptions({ flags: { envoyPort: "x" }, env: { PORT: "65536" } });
    expect(parsed).toEqual({
      kind: "problems",
      problems: [
        "--envoy-port must be a whole number from 0 to 65535",
        "PORT must be a whole number from 0 to 65535",
      ],
    });
  });

  it("refuses one port for two servers, but not two free ones", () => {
    const env = { ENVOY_PORT: "8080" };
    expect(parseDemoOptions({ flags: {}, env })).toEqual({
      kind: "problems",
      problems: ["--port or PORT: port 8080 is already used by --envoy-port or ENVOY_PORT"],
    });
    const free = { ENVOY_PORT: "0", PORT: "0", GRPC_PORT: "0" };
    expect(parseDemoOptions({ flags: {}, env: free })).toMatchObject({ kind: "options" });
  });
});

describe("demoFlagRows", () => {
  it("tells each port's environment name and default", () => {
    const lines = demoFlagRows.map(({ flags, docs }) => `${flags} ${docs}`);
    expect(lines).toContain(
      "--envoy-port <NUMBER> the port of Envoy for callers (default 10000; env ENVOY_PORT)",
    );
  });
});
