import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { measureMemories, serving, servingMark } from "./light-memory.js";
import type { ProofParts, ProofRow } from "./proof.js";

/** Turns in which each start is measured once; the least CPU counts. */
const turnCount = 8;

/** Time in which a service that has just started settles, in milliseconds. */
const settleMs = 1_500;

/** Where the process tells its CPU: behind standard error. */
const tellFd = 3;

/** Told at the end of a process, and when it is asked. */
const hook = `
const tell = () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  require("node:fs").writeSync(${tellFd}, String(userCPUTime + systemCPUTime) + "\\n");
};
process.on("exit", tell);
process.on("SIGUSR2", () => {
  tell();
  process.kill(process.pid, "SIGKILL");
});
`;

/** A start, and what it should take. */
interface Start {
  readonly name: string;
  readonly args: readonly string[];
  /** CPU in milliseconds; undefined: what the others stand beside. */
  readonly targetMs?: number;
  /** It runs until it has said this; absent: until its end. */
  readonly until?: string;
}

const program = "dist/cli/main.js";
const policy = "envoy/demo/policy.yaml";
const serve = [program, "serve"];
const ports = ["--grpc-port", "0", "--port", "0", "--debug-port", "0"];
const addresses = ["--control-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"];
const served = [...serve, "--policy", policy, "--log-format", "json", ...ports, ...addresses];
const request = ["demo", "remote_address=192.0.2.1"];

const starts: readonly Start[] = [
  { name: "node -e 0", args: ["-e", "0"] },
  { name: "headgate version", args: [program, "version"], targetMs: 120 },
  { name: "headgate check", args: [program, "check", policy], targetMs: 120 },
  {
    name: "headgate explain --policy",
    args: [program, "explain", "--policy", policy, ...request],
    targetMs: 120,
  },
  {
    name: "headgate serve, until it serves",
    args: served,
    targetMs: 400,
    until: servingMark,
  },
];

/** What the program costs before it decides anything, next to a bare node and to targets. */
export function lightParts(): ProofParts {
  return {
    starts: () => inFolder(measureStarts),
    drain: measureDrain,
    "memory, a minute and a half": () => inFolder((folder) => measureMemories(folder, serve)),
  };
}

async function inFolder<T>(measure: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-light-"));
  try {
    return await measure(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts each program in turn, and measures the CPU of all its threads. */
async function measureStarts(directory: string): Promise<readonly ProofRow[]> {
  const hookFile = join(directory, "hook.cjs");
  await writeFile(hookFile, hook);
  const least = new Map<Start, number>();
  for (let turn = 1; turn <= turnCount; turn += 1) {
    process.stderr.write(`starts, turn ${turn} of ${turnCount} ...\n`);
    for (const start of starts) {
      const cpuMs = await measureStart(start, hookFile);
      least.set(start, Math.min(cpuMs, least.get(start) ?? cpuMs));
    }
  }
  const [bare = 0] = least.values();
  return [...least].map(([{ name, targetMs }, cpuMs]) => ({
    group: "light",
    name: `CPU of ${name}`,
    value: cpuMs,
    unit: "ms",
    ...(targetMs === undefined ? {} : { target: { most: targetMs } }),
    ratio: cpuMs / bare,
  }));
}

/** Time from a signal to the end of a service without connections, the least of all turns. */
async function measureDrain(): Promise<readonly ProofRow[]> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let turn = 1; turn <= turnCount; turn += 1) {
    const args = [...served, "--drain-delay-ms", "0"];
    const child = spawn(process.execPath, args, { env: {}, stdio: ["ignore", "pipe", "inherit"] });
    await serving(child.stdout);
    // What is loaded after it serves would be in the way.
    await sleep(settleMs);
    const startMs = performance.now();
    child.kill("SIGTERM");
    await once(child, "exit");
    leastMs = Math.min(leastMs, performance.now() - startMs);
  }
  const name = "drain to exit, nothing open";
  return [{ group: "light", name, value: leastMs, unit: "ms", target: { most: 50 } }];
}

/** CPU of one start in milliseconds. */
async function measureStart({ name, args, until }: Start, hookFile: string): Promise<number> {
  const child = spawn(process.execPath, ["--require", hookFile, ...args], {
    // Node reads certificates of NODE_EXTRA_CA_CERTS at each start.
    env: {},
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  let said = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (until !== undefined && said.includes(until)) child.kill("SIGUSR2");
  });
  let told = "";
  child.stdio[tellFd]?.on("data", (chunk: Buffer) => {
    told += chunk.toString();
  });
  await once(child, "close");
  const cpuUs = Number.parseInt(told, 10);
  if (Number.isNaN(cpuUs)) throw new Error(`${name} did not tell its CPU: ${said}`);
  return cpuUs / 1_000;
}
