import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/app/config/config.js";
import { optionNames, optionRow } from "../../src/app/options/options.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess } from "../support/headgate-process.js";
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

/** Inodes of the sockets that a process holds. */
function socketsOf(pid: number): ReadonlySet<string> {
  const folder = `/proc/${pid}/fd`;
  const links = readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      // It was closed meanwhile.
      return [];
    }
  });
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}

/** Where a process listens, `host:port` or the path of a Unix socket. Source: proc(5). */
function listensAt(pid: number): readonly string[] {
  const own = socketsOf(pid);
  const lines = (name: string) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const listening = "0A";
  const tcp = ["tcp", "tcp6"].flatMap((name) =>
    lines(name)
      .filter((cells) => cells[3] === listening && own.has(cells[9] ?? ""))
      .map(([, address = ""]) => placeOf(address)),
  );
  const udp = ["udp", "udp6"].flatMap((name) =>
    lines(name)
      .filter((cells) => own.has(cells[9] ?? ""))
      .map(([, address = ""]) => `udp ${placeOf(address)}`),
  );
  const acceptsConnections = "00010000";
  const unix = lines("unix")
    .filter((cells) => cells[3] === acceptsConnections && own.has(cells[6] ?? ""))
    .map((cells) => cells[7] ?? "");
  return [...tcp, ...udp, ...unix].sort();
}

/** `0100007F:1F91` is 127.0.0.1:8081: the kernel prints the address as a number of this machine. */
function placeOf(text: string): string {
  const [address = "", port = ""] = text.split(":");
  const bytes = address.length === 8 ? [...Buffer.from(address, "hex")].reverse() : [address];
  return `${bytes.join(".")}:${Number.parseInt(port, 16)}`;
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

describe("the ports of the threat model", { timeout: 120_000 }, () => {
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
