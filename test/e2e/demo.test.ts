import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { ChildProgram, ProgramExit } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");
const stage = useStage("file");

/** How long the demo may take to show something, and to end, in milliseconds. */
const shownMsMax = 60_000;
const endMsMax = 15_000;

interface StartedDemo {
  readonly program: ChildProgram;
  readonly envoyPort: number;
  readonly httpPort: number;
  readonly grpcPort: number;
}

interface DemoSettings {
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a demo on free ports. */
async function startDemo({ flags = [], env = {} }: DemoSettings = {}): Promise<StartedDemo> {
  const [envoyPort, httpPort, grpcPort] = [await freePort(), await freePort(), await freePort()];
  const program = stage.spawn({
    name: "demo",
    file: process.execPath,
    args: [main, "demo", "--no-install", ...flags],
    env: {
      ENVOY_PORT: String(envoyPort),
      PORT: String(httpPort),
      GRPC_PORT: String(grpcPort),
      ...(env["ENVOY_BIN"] === undefined ? { ENVOY_BIN: await requireProgram("envoy") } : {}),
      ...env,
    },
  });
  // Killed at once, it could not remove its folder.
  stage.atEnd(async () => {
    program.signal("SIGINT");
    await within("the demo ends", endMsMax, program.exited);
  });
  return { program, envoyPort, httpPort, grpcPort };
}

async function untilShown({ program }: StartedDemo, text: string | RegExp): Promise<void> {
  const isShown = (): boolean =>
    typeof text === "string" ? program.output.includes(text) : text.test(program.output);
  await waitFor(`the demo shows ${text}`, () => isShown() || !program.isRunning, {
    withinMs: shownMsMax,
    everyMs: 50,
  });
  if (!isShown()) throw new Error(`the demo ended without ${text}: ${program.output}`);
}

/** Asks it to end, and answers how it did. */
function end({ program }: StartedDemo, signal: NodeJS.Signals): Promise<ProgramExit> {
  program.signal(signal);
  return within("the demo ends", endMsMax, program.exited);
}

/** The processes that the demo has started and that still run. */
async function childPids({ program }: StartedDemo): Promise<readonly number[]> {
  const ps = await promisify(execFile)("ps", ["-A", "-o", "ppid=,pid=,comm="]);
  return ps.stdout
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([parent, , command]) => parent === String(program.pid) && command !== "ps")
    .map(([, pid]) => Number(pid));
}

/** A test of what is left behind leaves nothing behind itself, also when it fails. */
function killAtEnd(pids: readonly number[]): void {
  stage.atEnd(() => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The folder of Envoy's files, as the demo names it. */
function folderOf({ program }: StartedDemo): string {
  const path = /\S+envoy\.log/.exec(program.output)?.[0] ?? "";
  expect(path).not.toBe("");
  return dirname(path);
}

/**
 * What a caller's requests are answered, one after the other. On a machine full of other work Envoy
 * may not wait for Headgate, and lets a request pass: then another caller asks as often.
 */
async function statusesFor(port: number, user: string, count: number): Promise<readonly number[]> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  for (let round = 0; round < roundsMax; round += 1) {
    const answers: HttpAnswer[] = [];
    for (let sent = 0; sent < count; sent += 1) {
      answers.push(await http.send({ port, headers: { "x-user": `${user}-${round}` } }));
    }
    const isDecided = answers.every(({ headers }) => headers["x-ratelimit-limit"] !== undefined);
    if (isDecided) return answers.map(({ status }) => status);
  }
  throw new Error("Envoy never waited for all decisions");
}

const roundsMax = 50;

/** Ends one by a signal, which leaves nothing behind. */
async function expectCleanEnd(demo: StartedDemo, signal: "SIGINT" | "SIGTERM"): Promise<void> {
  const pids = await childPids(demo);
  expect(pids).not.toEqual([]);
  const folder = folderOf(demo);
  expect(await end(demo, signal)).toEqual({ code: 0 });
  expect(pids.filter(isAlive)).toEqual([]);
  expect(existsSync(folder)).toBe(false);
}

describe.concurrent("headgate demo with Envoy", () => {
  it("shows a first 429, limits whoever calls, and takes an edited policy", async () => {
    const policy = join(stage.folder, "edited.yaml");
    await copyFile("envoy/demo/policy.yaml", policy);
    const demo = await startDemo({ flags: ["--policy", policy] });
    await untilShown(demo, /The first 429: alice has used up "free-pace", 5 requests in 10 s\./);
    expect(demo.program.output).toContain(
      `curl -i -H 'x-user: you' http://127.0.0.1:${demo.envoyPort}/`,
    );
    expect(await statusesFor(demo.envoyPort, "you", 6)).toEqual([200, 200, 200, 200, 200, 429]);
    await untilShown(demo, /\d+ s {2}.*\d+ ok/);

    const text = await readFile(policy, "utf8");
    await writeFile(policy, text.replace("requests_per_unit: 5}", "requests_per_unit: 1}"));
    await untilShown(demo, "The edited policy is active");
    expect(await statusesFor(demo.envoyPort, "me", 2)).toEqual([200, 429]);
    await writeFile(policy, text.replace("requests_per_unit: 5}", "requests_per_unti: 5}"));
    await untilShown(demo, /edited\.yaml:\d+:\d+/);
    await untilShown(demo, "requests_per_unit");

    await expectCleanEnd(demo, "SIGINT");
  });

  it("runs beside another demo, and leaves no Envoy behind when it is killed", async () => {
    const [demo, other] = [await startDemo(), await startDemo({ flags: ["--no-traffic"] })];
    await untilShown(other, "Try it");
    await untilShown(demo, "The first 429");
    await expectCleanEnd(other, "SIGTERM");
    const folder = folderOf(demo);
    stage.atEnd(() => rm(folder, { recursive: true }));
    const pids = await childPids(demo);
    expect(pids).not.toEqual([]);
    killAtEnd(pids);
    await demo.program.kill();
    await waitFor("its children are gone", () => !pids.some(isAlive));
  });

  it("kills an Envoy that does not end when asked", async () => {
    const demo = await startDemo({ flags: ["--no-traffic"] });
    await untilShown(demo, "Try it");
    const folder = folderOf(demo);
    const pids = await childPids(demo);
    expect(pids).not.toEqual([]);
    killAtEnd(pids);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    expect(await end(demo, "SIGHUP")).toEqual({ code: 0 });
    expect(pids.filter(isAlive)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  it("ends and shows the end of Envoy's log when Envoy ends by itself", async () => {
    const demo = await startDemo({ flags: ["--quiet-traffic"] });
    await untilShown(demo, "Try it");
    const folder = folderOf(demo);
    stage.atEnd(() => rm(folder, { recursive: true }));
    for (const pid of await childPids(demo)) process.kill(pid, "SIGKILL");
    expect(await within("the demo ends", endMsMax, demo.program.exited)).toEqual({ code: 1 });
    expect(demo.program.output).toContain("Envoy ended (SIGKILL)");
    expect(demo.program.output).toContain("starting main dispatch loop");
    expect(existsSync(join(folder, "envoy.log"))).toBe(true);
  });

  it("leaves no Envoy behind when the process that started it crashes", async () => {
    const source = pathToFileURL(resolve("src"));
    const [module, clock] = [`${source}/demo/demo-envoy.ts`, `${source}/host/clock.ts`];
    const config = await readFile("envoy/demo/edge/envoy.yaml", "utf8");
    const ports = { envoy: await freePort(), upstream: 1, headgate: 1 };
    const script = `
      import { Envoy, renderEnvoyConfig } from ${JSON.stringify(module)};
      import { systemClock as clock } from ${JSON.stringify(clock)};
      const config = renderEnvoyConfig(${JSON.stringify(config)}, ${JSON.stringify(ports)});
      const program = ${JSON.stringify(await requireProgram("envoy"))};
      const folder = ${JSON.stringify(stage.folder)};
      await new Envoy({ program, config, folder, clock }).ready();
      console.log("ready");
      process.once("SIGUSR2", () => { throw new Error("crash on purpose"); });
      setInterval(() => {}, 1_000);`;
    const program = stage.spawn({
      name: "crashing",
      file: process.execPath,
      args: ["--import", "tsx", "--input-type=module", "--eval", script],
    });
    await waitFor("Envoy is ready", () => program.output.includes("ready"), {
      withinMs: shownMsMax,
    });
    const pids = await childPids({ program, envoyPort: 0, httpPort: 0, grpcPort: 0 });
    expect(pids).not.toEqual([]);
    killAtEnd(pids);
    program.signal("SIGUSR2");
    expect(await within("it crashes", endMsMax, program.exited)).toEqual({ code: 1 });
    await waitFor("its Envoy is gone", () => !pids.some(isAlive));
  });
});

describe.concurrent("headgate demo without Envoy", () => {
  it("says what is missing, answers what the printed line asks, and has callers", async () => {
    const env = { ENVOY_BIN: "/nowhere/envoy", PATH: "" };
    const demo = await startDemo({ env, flags: ["--quiet-traffic"] });
    await untilShown(demo, "Try it");
    expect(demo.program.output).toContain(
      "Envoy is missing: ENVOY_BIN does not point to a working envoy.",
    );
    expect(demo.program.output).toContain("To install it, ");
    const line = /curl -i -d '(\{.*\})' http:\/\/127\.0\.0\.1:(\d+)(\/json)/;
    const [, body = "", port, path = ""] = line.exec(demo.program.output) ?? [];
    expect(port).toBe(String(demo.httpPort));
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const statuses: number[] = [];
    for (let sent = 0; sent < 6; sent += 1) {
      statuses.push((await http.send({ port: demo.httpPort, path, body })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    await untilShown(demo, /The first 429: alice has used up "free-pace", 5 requests in 10 s\./);
    expect(await end(demo, "SIGTERM")).toEqual({ code: 0 });
  });
});

describe.concurrent("headgate demo with wrong settings", () => {
  it("names every taken port and its setting, and leaves nothing running", async () => {
    const settings = ["ENVOY_PORT", "GRPC_PORT", "PORT", "UPSTREAM_PORT"];
    const env: Record<string, string> = {};
    for (const setting of settings) {
      const taken = createServer();
      const port = await freePort();
      await new Promise<void>((listening) => taken.listen(port, "127.0.0.1", listening));
      stage.atEnd(() => taken.close());
      env[setting] = String(port);
    }
    const { program } = await startDemo({ env });
    expect(await within("the demo ends", shownMsMax, program.exited)).toEqual({ code: 1 });
    for (const [setting, port] of Object.entries(env)) {
      expect(program.output).toContain(`Port ${port} (`);
      expect(program.output).toContain(` or ${setting}) is in use on 127.0.0.1`);
    }
  });

  it("ends with 3 and the place of the mistake when its policy is wrong", async () => {
    const policy = join(stage.folder, "wrong.yaml");
    await writeFile(policy, "domain: demo\ndescriptor: []\n");
    const { program } = await startDemo({ flags: ["--policy", policy] });
    expect(await within("the demo ends", shownMsMax, program.exited)).toEqual({ code: 3 });
    expect(program.output).toContain("wrong.yaml:2:1");
  });

  it("ends with 2 when a port is no port", async () => {
    const { program } = await startDemo({ flags: ["--envoy-port", "http"] });
    expect(await within("the demo ends", shownMsMax, program.exited)).toEqual({ code: 2 });
    expect(program.output).toContain("--envoy-port must be a whole number from 0 to 65535");
  });
});
