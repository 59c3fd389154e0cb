import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/app/config/config.js";
import { optionNames, optionRow } from "../../src/app/options/options.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { listensAt } from "../support/listening.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const policy = "domain: shop\ndescriptors: []\n";

/** Where others listen. */
const ofOthers = ["STATSD_HOST", "STATSD_PORT"];

/** A row of the table of ports. */
interface PortRow {
  readonly port: string;
  /** Names of settings, in their order. */
  readonly settings: readonly string[];
  readonly byDefault: string;
}

/** The table of ports of the threat model. */
function tableOfPorts(): readonly PortRow[] {
  const text = readFileSync("docs/security/threat-model.md", "utf8");
  const [, section = ""] = text.split("\n## Ports\n");
  const rows = section.split("\n## ")[0]?.match(/^\|.*\|$/gm) ?? [];
  return rows.slice(2).map((row) => {
    const [, port = "", settings = "", byDefault = ""] = row.split("|").map((cell) => cell.trim());
    const names = [...settings.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    return { port, settings: names, byDefault: byDefault.replaceAll("`", "") };
  });
}

/** Settings that open every port of the table on loopback, and where each is then. */
async function everythingOn() {
  const env: Record<string, string> = { USE_PROMETHEUS: "true" };
  const places = new Map<string, string>();
  for (const { port: name, settings } of tableOfPorts()) {
    const port = await freePort();
    places.set(name, `127.0.0.1:${port}`);
    for (const setting of settings) {
      if (setting.endsWith("_ADDR")) env[setting] = `127.0.0.1:${port}`;
      if (setting.endsWith("HOST")) env[setting] = "127.0.0.1";
      if (setting.endsWith("PORT")) env[setting] = String(port);
    }
  }
  return { env, places };
}

/** A process that has said that it serves; its HTTP port is of the settings. */
async function startedWith(env: Readonly<Record<string, string>>): Promise<HeadgateProcess> {
  const headgate = await HeadgateProcess.prepare(stage, { policy, env });
  const program = headgate.spawn();
  const isServing = () => program.output.includes('"event":"serving"');
  await waitFor("it serves", async () => isServing() || !program.isRunning, { withinMs: 60_000 });
  expect(isServing(), program.output).toBe(true);
  return headgate;
}

describe("the ports of the threat model", () => {
  it("are all that a process with everything on listens on, and each of them is", async () => {
    const { env, places } = await everythingOn();
    const headgate = await startedWith(env);
    expect(places.size).toBeGreaterThanOrEqual(8);
    expect(listensAt(headgate.process.pid)).toEqual([...places.values()].sort());
  });

  it("have a Unix socket in the place of gRPC's where one is named", async () => {
    const { env, places } = await everythingOn();
    const path = join(stage.folder, "grpc.sock");
    const headgate = await startedWith({ ...env, GRPC_UDS: path });
    places.set("gRPC", path);
    expect(listensAt(headgate.process.pid)).toEqual([...places.values()].sort());
  });

  it("are named by every setting of an address", () => {
    const addresses = optionNames
      .map((name) => optionRow(name).env)
      .filter((env) => /(?:^|_)(?:ADDR|HOST|PORT|UDS)$/.test(env) && !ofOthers.includes(env));
    const named = tableOfPorts().flatMap(({ settings }) => settings);
    expect([...named].sort()).toEqual([...addresses].sort());
  });

  it("are by default where the table says", () => {
    const loaded = loadConfig({ flags: {}, env: { HEADGATE_POLICY: "policy.yaml" } });
    if (loaded.kind !== "config") throw new Error("the defaults are wrong");
    const { config } = loaded;
    const at = (place: { readonly host: string; readonly port: number } | undefined) =>
      place === undefined ? "off" : `${place.host}:${place.port}`;
    expect(new Map(tableOfPorts().map(({ port, byDefault }) => [port, byDefault]))).toEqual(
      new Map([
        ["gRPC", at({ host: config.grpcHost, port: config.grpcPort })],
        ["HTTP", at(config)],
        ["monitoring", at(config.monitoringAddress)],
        ["control", at(config.controlAddress)],
        ["RESP", at(config.resp)],
        ["admin", at(config.admin)],
        ["debug", at({ host: config.debugHost, port: config.debugPort })],
        ["Prometheus", at(config.stats.prometheus?.address)],
      ]),
    );
  });
});
