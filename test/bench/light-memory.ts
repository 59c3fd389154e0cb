import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";
import type { ProofRow } from "./proof.js";
import { measureLoad } from "./run-load.js";
import { rateLimitCalls } from "./scenario.js";

/** When idle processes are looked at, in milliseconds after they serve. */
const looksMs = [5_000, 60_000] as const;

/** What a program that serves has logged. */
export const servingMark = '"event":"serving"';

/** How long a million keys are asked for, in milliseconds: each is used several times. */
const loadMs = 30_000;

/** A process, and what it may hold. */
interface Held {
  readonly name: string;
  /** Arguments of Node. */
  readonly args: readonly string[];
  /** Where it is asked for a million keys; absent: it idles. */
  readonly loadedPort?: number;
  /** The most, in megabytes; or how much more than another of these. */
  readonly target?: number | { readonly more: number; readonly than: string };
}

/** Resident memory of a process, in megabytes. Source: proc(5), status. */
interface Resident {
  readonly whole: number;
  /** Of it, what is mapped from files: the pages of Node's own program. */
  readonly file: number;
}

/** What processes of the program hold while they idle, beside a bare node, and with many keys. */
export async function measureMemory(
  directory: string,
  serve: readonly string[],
): Promise<readonly ProofRow[]> {
  const policyOf = async (ruleCount: number): Promise<string> => {
    const path = join(directory, `${ruleCount}-rules.yaml`);
    await writeFile(path, policyText(ruleCount));
    return path;
  };
  const [few, many] = [await policyOf(100), await policyOf(10_000)];
  const loadedPort = await freePort();
  const ports = ["--port", "0", "--debug-port", "0", "--log-format", "json"];
  const own = [...serve, ...ports, "--grpc-port", "0", "--admin-addr", "127.0.0.1:0"];
  const keys = ["--new-keys-per-second-max", "1000000000", "--memory-keys-max", "2000000"];
  const loaded = [...serve, ...ports, "--grpc-port", String(loadedPort), ...keys];
  const sidecar = [...serve, "--preset", "sidecar", "--grpc-port", "0", "--log-format", "json"];
  const processes: readonly Held[] = [
    { name: bareName, args: ["-e", "setInterval(() => {}, 1e9)"] },
    { name: fewName, args: [...own, "--policy", few], target: 70 },
    {
      name: "serve, 10,000 rules",
      args: [...own, "--policy", many],
      target: { more: 40, than: fewName },
    },
    { name: "serve --preset sidecar, 100 rules", args: [...sidecar, "--policy", few], target: 55 },
    {
      name: "serve, 1,000,000 live keys",
      args: [...loaded, "--policy", few],
      loadedPort,
      target: { more: 120, than: fewName },
    },
  ];
  // Side by side: what one holds does not depend on the others.
  const looks = await Promise.all(processes.map(measureHeld));
  const wholeOf = (name: string): number =>
    looks[processes.findIndex((process) => process.name === name)]?.at(-1)?.whole ?? 0;
  return processes.map(({ name, target }, index): ProofRow => {
    const [first, last = first] = looks[index] ?? [];
    const value = last?.whole ?? 0;
    const most = typeof target === "object" ? wholeOf(target.than) + target.more : target;
    return {
      group: "light",
      name: `resident memory of ${name}`,
      value,
      unit: "MB",
      ...(most === undefined ? {} : { target: { most }, ratio: value / wholeOf(bareName) }),
      note: `${(last?.file ?? 0).toFixed(0)} MB are files; ${(first?.whole ?? 0).toFixed(0)} MB after 5 s`,
    };
  });
}

const bareName = "node, idle";
const fewName = "serve, 100 rules";

/** What one holds at each look. */
async function measureHeld({ name, args, loadedPort }: Held): Promise<readonly Resident[]> {
  const child = spawn(process.execPath, args, { env: {}, stdio: ["ignore", "pipe", "inherit"] });
  try {
    if (name !== bareName) await serving(child.stdout);
    if (loadedPort !== undefined) await useKeys(loadedPort);
    const looks: Resident[] = [];
    let sinceMs = 0;
    for (const lookMs of looksMs) {
      await sleep(lookMs - sinceMs);
      sinceMs = lookMs;
      looks.push(readResident(child.pid ?? 0));
    }
    return looks;
  } finally {
    child.kill("SIGKILL");
  }
}

/** Resolves when a program serves; whatever it says afterwards is read, and dropped. */
export function serving(output: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    let said = "";
    output.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes(servingMark)) resolve();
    });
  });
}

async function useKeys(port: number): Promise<void> {
  process.stderr.write("a million keys ...\n");
  const order = {
    port,
    calls: rateLimitCalls(1_000_000),
    connectionCount: 4,
    pace: { kind: "closed", inFlightPerConnection: 50 },
    warmUpMs: 0,
    durationMs: loadMs,
  } as const;
  const { report } = await measureLoad(order, []);
  if (report.callCount < 1_000_000) throw new Error(`only ${report.callCount} calls were made`);
}

function readResident(pid: number): Resident {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string): number => {
    const [, kilobytes] = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status) ?? [];
    return Number(kilobytes) / 1_024;
  };
  return { whole: megabytes("VmRSS"), file: megabytes("RssFile") };
}

/** Rules for keys of their own, and the one for what the load asks. */
function policyText(ruleCount: number): string {
  const rules = Array.from({ length: ruleCount - 1 }, (_, i) => [
    `  - key: key-${i}`,
    `    rate_limit: { unit: minute, requests_per_unit: ${i + 1} }`,
  ]);
  return [
    "domain: bench",
    "descriptors:",
    "  - key: user",
    "    rate_limit: { unit: day, requests_per_unit: 1000000 }",
    ...rules.flat(),
    "",
  ].join("\n");
}
