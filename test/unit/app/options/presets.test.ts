import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import { optionNames, optionRow } from "../../../../src/app/options/options.js";
import { presets } from "../../../../src/app/options/presets.js";

function configOf(env: Readonly<Record<string, string>>, flags = {}) {
  const loaded = loadConfig({ flags, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

describe("presets", () => {
  it("set what there is, to something else than the default", () => {
    const rows = new Map(optionNames.map((name) => [optionRow(name).env, optionRow(name)]));
    for (const [name, text] of Object.values(presets).flatMap((one) => Object.entries(one))) {
      const parsed = rows.get(name)?.parse(text);
      expect(parsed, name).toMatchObject({ kind: "value" });
      expect(parsed, name).not.toEqual({ kind: "value", value: rows.get(name)?.defaultValue });
    }
  });

  it("has a sidecar that only its own pod reaches, with small caches", () => {
    const { admin, controlAddress, monitoringAddress, resp, stats, openPorts, ...others } =
      configOf({ HEADGATE_POLICY: "policy.yaml" }, { preset: "sidecar" });
    const ports = [admin, controlAddress, monitoringAddress, resp, stats.prometheus, openPorts];
    expect(ports.filter((port) => port !== undefined)).toEqual([]);
    expect(others).toMatchObject({
      grpcHost: "127.0.0.1",
      host: "",
      httpJson: false,
      debugHost: "",
      connectionsPerAddressMax: 256,
      requestsInFlightMax: 2_000,
      memoryKeysMax: 100_000,
      cacheBytesMax: 8_388_608,
      drainDelayMs: 0,
    });
  });

  it("yield to the environment and to flags", () => {
    const env = { HEADGATE_PRESET: "sidecar", HEADGATE_ADMIN_ADDR: "127.0.0.1:9" };
    const config = configOf(env, { memoryKeysMax: "5000", preset: "sidecar" });
    expect(config.admin).toMatchObject({ host: "127.0.0.1", port: 9 });
    expect(config.memoryKeysMax).toBe(5_000);
    expect(configOf(env, { preset: "none" }).memoryKeysMax).toBe(1_000_000);
  });

  it("have names, and no others", () => {
    const loaded = loadConfig({ flags: {}, env: { HEADGATE_PRESET: "constructor" } });
    expect(loaded).toEqual({
      kind: "problems",
      problems: ["HEADGATE_PRESET must be one of none, sidecar"],
    });
  });
});
