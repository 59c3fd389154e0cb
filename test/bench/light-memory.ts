import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";
import type { ProofRow } from "./proof.js";
import { measureLoad } from "./run-load.js";
import { rateLimitCalls } from "./scenario.js";

/** When idle processes are looked at, in milliseconds after they serve: V8 has shrunk by then. */
const idleMs = 60_000;

/** What a program that serves has logged. */
export const servingMark = '"event":"serving"';

/** Calls for a million keys: each is used several times, however fast the machine is. */
const loadCalls = 3_000_000;

/** A process, and what it may hold. */
interface Held {
  readonly name: string;
  /** Arguments of Node. */
  readonly args: readonly string[];
  /** Where it is asked for a million keys; absent: it idles. */
  readonly loadedPort?: number;
  /** In megabytes. */
  readonly targetMost?: number;
  /** Whether the target is of what it holds more than the service with few rules. */
  readonly isMore?: boolean;
}

/** Resident memory of a process, in megabytes. Source: proc(5), status. */
interface Resident {
  readonly whole: number;
  /** Of it, what is mapped from files: the pages of Node's own program. */
  readonly file: number;
}

/** What processes of the program hold while they idle, beside a bare node, and with many keys. */
export async function measureMemories(
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
    { name: bareNode, args: ["-e", "setInterval(() => {}, 1e9)"] },
    {
      name: fewRules,
      args: [...own, "--policy", few],
      targetMost: 70,
    },
    {
      name: "serve, 10,000 rules",
      args: [...own, "--policy", many],
      targetMost: 40,
      isMore: true,
    },
    {
      name: "serve --preset sidecar, 100 rules",
      args: [...sidecar, "--policy", few],
      targetMost: 55,
    },
    {
      name: "serve, 1,000,000 live keys",
      args: [...loaded, "--policy", few],
      loadedPort,
      targetMost: 120,
      isMore: true,
    },
  ];
  // Side by side: what one holds does not depend on the others.
  const held = await Promise.all(processes.map(measureHeld));
  const wholeOf = (name: string): number =>
    held[processes.findIndex((process) => process.name === name)]?.whole ?? 0;
  return processes.map(({ name, targetMost, isMore = false }, i): ProofRow => {
    const { whole = 0, file = 0 } = held[i] ?? {};
    const more = isMore ? `, more than ${fewRules}` : "";
    return {
      group: "light",
      name: `resident memory of ${name}${more}`,
      value: isMore ? whole - wholeOf(fewRules) : whole,
      unit: "MB",
      ...(targetMost === undefined ? {} : { target: { most: targetMost } }),
      ratio: whole / wholeOf(bareNode),
      note: `${whole.toFixed(0)} MB after a minute, ${file.toFixed(0)} of it pages of files`,
    };
  });
}

const bareNode = "node, idle";
const fewRules = "serve, 100 rules";

/** What the image sets for malloc: users run it, so it is what is measured. */
async function imageEnvironment(): Promise<Record<string, string>> {
  const dockerfile = await readFile("Dockerfile", "utf8");
  const settings = [...dockerfile.matchAll(/(MALLOC_\w+)=(\d+)/g)];
  if (settings.length === 0) throw new Error("the Dockerfile sets nothing for malloc");
  return Object.fromEntries(settings.map(([, name, value]) => [name, value]));
}

async function measureHeld({ name, args, loadedPort }: Held): Promise<Resident> {
  const env = await imageEnvironment();
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    if (name !== bareNode) await serving(child.stdout);
    if (loadedPort !== undefined) await useKeys(loadedPort);
    await sleep(idleMs);
    return readResident(child.pid ?? 0);
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
    warmUpCalls: loadCalls,
    durationMs: 100,
  } as const;
  await measureLoad(order, []);
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
