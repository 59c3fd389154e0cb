import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { layOut } from "./report.js";

/** Turns in which each start is measured once; the least CPU counts. */
const turnCount = 8;

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
const ports = ["--grpc-port", "0", "--port", "0", "--debug-port", "0"];
const addresses = ["--control-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"];
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
    args: [program, "serve", "--policy", policy, "--log-format", "json", ...ports, ...addresses],
    targetMs: 400,
    until: '"event":"serving"',
  },
];

/** Starts each program in turn and tells the CPU of all its threads, next to its target. */
export async function tellLight(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "headgate-light-"));
  try {
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
    const cells = [...least].map(([{ name, targetMs }, cpuMs]) => [
      name,
      cpuMs.toFixed(0),
      (cpuMs / bare).toFixed(1),
      targetMs === undefined ? "" : `at most ${targetMs}`,
    ]);
    return layOut([["start", "CPU ms", "x node", "target"], ...cells]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** CPU of one start in milliseconds. */
async function measureStart({ name, args, until }: Start, hookFile: string): Promise<number> {
  const child = spawn(process.execPath, ["--require", hookFile, ...args], {
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
