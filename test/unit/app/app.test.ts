import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type App, startApp } from "../../../src/app/app.js";
import { createLogger, silentLogger } from "../../../src/app/base/logger.js";
import type { AppParts } from "../../../src/app/foundation/runtime.js";
import type { Clock } from "../../../src/core/base/clock.js";
import { configOf, quietEnv } from "../../support/configured-store.js";
import { parseHere } from "../../support/parse-here.js";
import { realClock } from "../../support/real-clock.js";
import { RlsClient } from "../../support/rls-client.js";

let folder: string;
let apps: App[];
let clients: RlsClient[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-app-"));
  apps = [];
  clients = [];
});

afterEach(async () => {
  for (const client of clients) client.close();
  for (const app of apps) await app.close();
  await rm(folder, { recursive: true });
});

const policyText = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1}
`;

async function start(
  env: Readonly<Record<string, string>> = {},
  { text = policyText, parts = { parser: parseHere } }: { text?: string; parts?: AppParts } = {},
): Promise<App> {
  const path = join(folder, "policy.yaml");
  await writeFile(path, text);
  const config = configOf({ HEADGATE_POLICY: path, ...quietEnv, ...env });
  const app = await startApp(config, parts);
  apps.push(app);
  return app;
}

function client(app: App): RlsClient {
  const { grpcAddress } = app;
  const made = new RlsClient(
    grpcAddress.kind === "tcp" ? grpcAddress.port : { target: `unix:${grpcAddress.path}` },
  );
  clients.push(made);
  return made;
}

describe("startApp()", () => {
  it("decides over gRPC and over HTTP, by the same state", async () => {
    // The policy is parsed by a thread, as in production.
    const app = await start({}, { parts: {} });
    const question = { descriptors: [["user=a"]] };
    expect(await client(app).ask(question)).toMatchObject({ kind: "decided", isDenied: false });
    const answer = await fetch(`http://127.0.0.1:${app.httpAddress?.port}/json`, {
      method: "POST",
      body: JSON.stringify({
        domain: "edge",
        descriptors: [{ entries: [{ key: "user", value: "a" }] }],
      }),
    });
    expect(answer.status).toBe(429);
  });

  it("closes once, however often it is asked to, and then nothing listens", async () => {
    const app = await start();
    const first = app.close();
    expect(app.close()).toBe(first);
    expect(await first).toBe(true);
    const url = `http://127.0.0.1:${app.httpAddress?.port}/livez`;
    await expect(fetch(url)).rejects.toBeInstanceOf(Error);
    expect(await client(app).ask({ descriptors: [["user=a"]], timeoutMs: 300 })).toMatchObject({
      kind: "failed",
    });
  });

  it("waits for no timer when it is closed without a delay and nothing is open", async () => {
    let isStopped = false;
    const clock: Clock = {
      ...realClock,
      schedule: (delayMs, callback) =>
        realClock.schedule(delayMs, () => {
          if (!isStopped) callback();
        }),
    };
    const ports = { HEADGATE_ADMIN_ADDR: "127.0.0.1:0", HEADGATE_CONTROL_ADDR: "127.0.0.1:0" };
    const app = await start(ports, { parts: { parser: parseHere, clock } });
    isStopped = true;
    expect(await app.close(0)).toBe(true);
  });

  it("calls `beforeServing` once all is open, and before it serves", async () => {
    const seen: string[] = [];
    const logger = { ...silentLogger, info: (line: { event: string }) => seen.push(line.event) };
    const beforeServing = (): number => seen.push("beforeServing");
    await start({}, { parts: { parser: parseHere, logger, beforeServing } });
    expect(seen.indexOf("beforeServing")).toBeGreaterThanOrEqual(0);
    expect(seen.slice(seen.indexOf("beforeServing"))).toEqual(["beforeServing", "serving"]);
  });

  it("refuses an invalid policy with its problems and exit code 3", async () => {
    await expect(start({}, { text: "domain: edge\ndescriptorz: []" })).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/policy\.yaml:2:1: HG\d+ /),
    });
  });

  it("says how to name a policy when there is none", async () => {
    const path = join(folder, "none.yaml");
    await expect(start({ HEADGATE_POLICY: path })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/no such file.*--policy or HEADGATE_POLICY/),
    });
  });

  it.each([
    [
      { GRPC_HOST: "0.0.0.0", HEADGATE_CONTROL_ADDR: ":0" },
      ["GRPC_HOST and HEADGATE_CONTROL_ADDR"],
    ],
    [{}, []],
  ])("warns of ports that strangers may reach before it opens them: %j", async (env, names) => {
    const path = join(folder, "log");
    const log = await open(path, "w");
    const logger = await createLogger(
      { logLevel: "info", logFormat: "json" },
      { fd: log.fd, isTerminal: false },
    );
    // It opens none: its policy is wrong.
    const parts = { parser: parseHere, logger };
    await expect(start(env, { text: "domain: [", parts })).rejects.toMatchObject({ exitCode: 3 });
    await log.close();
    const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
    const said = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "openPorts");
    expect(said).toEqual(
      names.map((name) =>
        expect.objectContaining({
          level: "warn",
          "@message": expect.stringContaining(`can reach ${name} without`),
        }),
      ),
    );
  });

  it.each(["GRPC_PORT", "PORT"])("names a taken %s, and leaves nothing open", async (setting) => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const address = taken.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    try {
      await expect(start({ [setting]: port })).rejects.toMatchObject({
        exitCode: 1,
        message: expect.stringContaining(`Port ${port} (${setting}) is in use`),
      });
    } finally {
      taken.close();
    }
  });
});
