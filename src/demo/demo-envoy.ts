import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { Clock } from "../core/base/clock.js";
import { assert } from "../core/base/errors.js";
import { httpStatuses } from "../core/base/http-status.js";

/** Ports in edge/envoy.yaml of each example, and the allowed numbers of their occurrences. */
const filePorts = {
  envoy: { port: 10_000, counts: [1] },
  // For each service with this address.
  upstream: { port: 10_080, counts: [1, 2] },
  // A second upstream, to which requests fall back.
  cheaper: { port: 10_081, counts: [0, 1] },
  headgate: { port: 8_081, counts: [1] },
  // In examples whose Envoys take part in the feedback loop.
  control: { port: 18_000, counts: [0, 1] },
  // The admin address, and the address at which the statistics listener reaches it.
  admin: { port: 9_901, counts: [2] },
  statistics: { port: 9_902, counts: [1] },
} as const satisfies Readonly<Record<string, { port: number; counts: readonly number[] }>>;

/** Ports on which the demo's Envoy listens and that it calls. */
export type EnvoyPorts = Readonly<Record<"envoy" | "upstream" | "headgate", number>> & {
  /** In examples whose Envoys take part in the feedback loop. */
  readonly control?: number;
  /** In the example with a second upstream. */
  readonly cheaper?: number;
};

/**
 * Replaces the ports in the demo's Envoy configuration. The admin port is a free one, so that users
 * do not find the demo's statistics on the port of their own Envoy.
 */
export function renderEnvoyConfig(text: string, ports: EnvoyPorts): string {
  const wanted: Readonly<Record<string, number>> = {
    control: 0,
    cheaper: 0,
    ...ports,
    admin: 0,
    statistics: 0,
  };
  let rendered = text;
  for (const [name, { port, counts }] of Object.entries(filePorts)) {
    const pattern = new RegExp(`(?<=port_value: )${port}\\b`, "g");
    const found = [...text.matchAll(pattern)].length;
    const isExpected = counts.some((count) => count === found);
    assert(isExpected, `port_value ${port} is ${found} times in envoy.yaml, not ${counts}`);
    // Replaces ports by marks first, since a wanted port may be another name's port in the file.
    rendered = rendered.replace(pattern, `@${name}`);
  }
  return rendered.replace(/(?<=port_value: )@(\w+)/g, (_, name: string) => String(wanted[name]));
}

interface EnvoyParts {
  /** Path of the program. */
  readonly program: string;
  /** The whole configuration. */
  readonly config: string;
  /** For its configuration and its log. */
  readonly folder: string;
  readonly clock: Clock;
}

/** How Envoy ended, in words, and the end of its log. */
export interface EnvoyEnd {
  /** For example "exit code 1" or "SIGSEGV". */
  readonly how: string;
  /** The last lines of its log. */
  readonly logTail: string;
}

/** Time until Envoy must be ready, in milliseconds. It normally takes well under a second. */
const readyMsMax = 20_000;

/** Time for Envoy to end after SIGTERM, in milliseconds. After it, Envoy is killed. */
const graceMs = 3_000;

/** Time between two checks whether Envoy is ready, in milliseconds. */
const lookEveryMs = 50;

/** Maximum number of log lines shown if Envoy fails. */
const tailLinesMax = 12;

/**
 * A running Envoy: a child process that never outlives this one. When this process exits, even by a
 * crash, it kills Envoy. If this process is killed itself, the guard kills Envoy.
 */
export class Envoy {
  readonly logPath: string;
  /** Resolves when it has ended for any reason. */
  readonly ended: Promise<EnvoyEnd>;
  readonly #child: ChildProcess;
  readonly #parts: EnvoyParts;
  readonly #adminPath: string;
  #end: EnvoyEnd | undefined;

  constructor(parts: EnvoyParts) {
    this.#parts = parts;
    this.logPath = join(parts.folder, "envoy.log");
    this.#adminPath = join(parts.folder, "admin-address");
    const configPath = join(parts.folder, "envoy.yaml");
    writeFileSync(configPath, parts.config);
    // Envoy's own --log-path would miss messages from before it has read its arguments.
    const log = openSync(this.logPath, "a");
    this.#child = spawn(parts.program, envoyArguments(configPath, this.#adminPath), {
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    const endGuard = startGuard(this.#child.pid);
    const kill = (): void => void this.#child.kill("SIGKILL");
    process.once("exit", kill);
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        process.off("exit", kill);
        endGuard();
        this.#end = { how, logTail: readTail(this.logPath) };
        resolve(this.#end);
      };
      this.#child.once("error", (error) => end(error.message));
      this.#child.once("exit", (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  /** Resolves with the admin address once Envoy serves; undefined if it ended or is too slow. */
  async ready(): Promise<string | undefined> {
    const { clock } = this.#parts;
    const endMs = clock.monotonicMs() + readyMsMax;
    while (this.#end === undefined && clock.monotonicMs() < endMs) {
      const address = readText(this.#adminPath);
      if (address !== "" && (await isServing(address))) return address;
      await new Promise<void>((resolve) => clock.schedule(lookEveryMs, resolve));
    }
    return undefined;
  }

  /** Stops Envoy with SIGTERM, kills it if it does not end, and resolves when it has ended. */
  async stop(): Promise<void> {
    if (this.#end !== undefined) return;
    this.#child.kill("SIGTERM");
    const cancel = this.#parts.clock.schedule(graceMs, () => this.#child.kill("SIGKILL"));
    await this.ended;
    cancel();
  }
}

/**
 * Starts a shell that reads from this process until it is gone, and then kills the process `pid`.
 * The returned function ends the shell, because the number may then belong to another process.
 */
function startGuard(pid: number | undefined): () => void {
  if (pid === undefined) return () => {};
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -KILL "$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a shell, there is no guard, and everything else still works.
  guard.once("error", () => {});
  return () => void guard.kill("SIGKILL");
}

function envoyArguments(configPath: string, adminPath: string): readonly string[] {
  return [
    ...["--config-path", configPath],
    // The file from which the admin port is read.
    ...["--admin-address-path", adminPath],
    // One worker is enough, and two demos must not share a memory segment.
    ...["--concurrency", "1", "--disable-hot-restart"],
    ...["--log-level", "info"],
  ];
}

/** Reports whether Envoy says that it is ready. Source: Envoy's admin interface, GET /ready. */
function isServing(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(`http://${address}/ready`, { agent: false, timeout: 1_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === httpStatuses.ok);
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
    asked.once("close", () => resolve(false));
    asked.end();
  });
}

function readTail(path: string): string {
  return readText(path).trimEnd().split("\n").slice(-tailLinesMax).join("\n");
}

/** Returns a file's text without surrounding white space; empty if there is no file. */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
