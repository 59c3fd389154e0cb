import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type App, startApp } from "../../../src/app/app.js";
import { type LogEvent, silentLogger } from "../../../src/app/base/logger.js";
import { expiryUs, TestAuthority, type TestCertificate } from "../../support/certificates.js";
import { configOf, quietEnv } from "../../support/configured-store.js";
import { parseHere } from "../../support/parse-here.js";
import { realClock } from "../../support/real-clock.js";
import { outcomeOf, type RlsAnswer, RlsClient } from "../../support/rls-client.js";
import { TlsFolder } from "../../support/tls-folder.js";
import { waitFor } from "../../support/wait.js";

const authority = new TestAuthority();
const stranger = new TestAuthority();
const server = authority.issue({ names: ["headgate.shop"] });
const client = authority.issue({ uris: ["spiffe://shop/edge"] });

let folder: string;
let files: TlsFolder;
let apps: App[];
let clients: RlsClient[];
let events: LogEvent[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-app-tls-"));
  files = new TlsFolder(join(folder, "certs"));
  await files.write({ server, clientAuthority: authority.certificate });
  apps = [];
  clients = [];
  events = [];
});

afterEach(async () => {
  for (const made of clients) made.close();
  for (const app of apps) await app.close();
  await rm(folder, { recursive: true });
});

const policyText = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000000}
`;

async function start(env: Readonly<Record<string, string>>): Promise<App> {
  const path = join(folder, "policy.yaml");
  await writeFile(path, policyText);
  const config = configOf({
    HEADGATE_POLICY: path,
    ...quietEnv,
    ...env,
  });
  const note = (event: LogEvent): void => {
    events.push(event);
  };
  const logger = { ...silentLogger, info: note, warn: note, error: note };
  const app = await startApp(config, { logger, parser: parseHere });
  apps.push(app);
  return app;
}

/** A caller that trusts the test's authority, and shows a certificate if it has one. */
function secure(shown?: TestCertificate, root = authority.certificate): ChannelCredentials {
  const roots = Buffer.from(root);
  if (shown === undefined) return credentials.createSsl(roots);
  const { certificate, key } = shown;
  return credentials.createSsl(roots, Buffer.from(key), Buffer.from(certificate));
}

function call(app: App, of?: ChannelCredentials): RlsClient {
  const { grpcAddress } = app;
  const target =
    grpcAddress.kind === "tcp" ? `127.0.0.1:${grpcAddress.port}` : `unix:${grpcAddress.path}`;
  const made = new RlsClient({
    target,
    ...(of === undefined ? {} : { credentials: of }),
    serverName: "headgate.shop",
  });
  clients.push(made);
  return made;
}

const question = { descriptors: [["user=a"]], timeoutMs: 10_000 };

/** A client tries to connect as long as its call may wait: where it cannot, that is not long. */
function failing(caller: RlsClient): Promise<RlsAnswer> {
  return caller.ask({ ...question, timeoutMs: 100 });
}

async function metric(app: App, name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${app.httpAddress?.port}/metrics`);
  const line = (await answer.text()).split("\n").find((one) => one.startsWith(`${name} `));
  return Number(line?.split(" ")[1]);
}

describe("startApp() with TLS", () => {
  beforeEach(() => {});

  it("decides for clients that trust its certificate, and serves HTTP in plaintext", async () => {
    const app = await start(files.env);
    expect(outcomeOf(await call(app, secure()).ask(question))).toBe("OK");
    const url = `http://127.0.0.1:${app.httpAddress?.port}/healthcheck`;
    expect((await fetch(url)).status).toBe(200);
  });

  it("is refused by clients of other authorities, and refuses plaintext", async () => {
    const app = await start(files.env);
    expect(await failing(call(app, secure(undefined, stranger.certificate)))).toMatchObject({
      kind: "failed",
    });
    expect(await failing(call(app))).toMatchObject({ kind: "failed" });
    const name = 'headgate_tls_refused_connections_total{cause="plaintext"}';
    await waitFor("it is counted", async () => (await metric(app, name)) > 0);
    expect(events.find(({ event }) => event === "tlsRefused")).toMatchObject({
      cause: "plaintext",
    });
  });

  it("decides for clients with a certificate that holds the name, and for no others", async () => {
    const app = await start({ ...files.mutualEnv, GRPC_CLIENT_TLS_SAN: "spiffe://shop/edge" });
    expect(outcomeOf(await call(app, secure(client)).ask(question))).toBe("OK");
    const others = [undefined, stranger.issue(), authority.issue({ names: ["edge"] })];
    for (const shown of others) {
      expect(await failing(call(app, secure(shown)))).toMatchObject({ kind: "failed" });
    }
    for (const cause of ["noClientCertificate", "untrustedClientCertificate", "wrongClientSan"]) {
      const name = `headgate_tls_refused_connections_total{cause="${cause}"}`;
      await waitFor("it is counted", async () => (await metric(app, name)) > 0);
    }
    expect(await metric(app, "headgate_internal_errors_total")).toBe(0);
  });

  it("says when its certificate expires", async () => {
    const app = await start(files.env);
    const seconds = await metric(app, "headgate_tls_certificate_expiry_timestamp_seconds");
    expect(seconds * 1_000_000).toBe(expiryUs(server));
    expect(await metric(app, "headgate_tls_certificate_stale")).toBe(0);
  });

  it("takes new certificates under load without a failed call", async () => {
    const app = await start(files.mutualEnv);
    let isOver = false;
    const outcomes = new Set<string>();
    const callers = [1, 2, 3, 4].map(async (number) => {
      const steady = call(app, secure(client));
      while (!isOver) {
        outcomes.add(outcomeOf(await steady.ask(question)));
        // Half of them connect anew for each question.
        if (number > 2) continue;
        const fresh = call(app, secure(client));
        outcomes.add(outcomeOf(await fresh.ask(question)));
        fresh.close();
      }
    });
    const loads = 'headgate_tls_certificate_loads_total{result="loaded"}';
    for (let count = 2; count <= 3; count += 1) {
      const renewed = authority.issue({ names: ["headgate.shop"] });
      // Certificate and key are two writes: between them the pair is half written.
      await files.write({ server: renewed });
      await waitFor("it is loaded", async () => (await metric(app, loads)) >= count);
    }
    isOver = true;
    await Promise.all(callers);
    expect([...outcomes]).toEqual(["OK"]);
  });

  it("asks connections to go when they reach their age, and loses no call", async () => {
    const app = await start({
      ...files.env,
      GRPC_MAX_CONNECTION_AGE: "50ms",
      GRPC_MAX_CONNECTION_AGE_GRACE: "10s",
    });
    const caller = call(app, secure());
    const outcomes = new Set<string>();
    const endMs = realClock.monotonicMs() + 400;
    while (realClock.monotonicMs() < endMs) outcomes.add(outcomeOf(await caller.ask(question)));
    expect([...outcomes]).toEqual(["OK"]);
  });

  it("closes by itself with clients connected", async () => {
    const app = await start(files.env);
    await call(app, secure()).ask(question);
    expect(await app.close()).toBe(true);
  });

  it("names all that is wrong with its files, with the exit code of a configuration", async () => {
    await rm(files.keyPath);
    await writeFile(files.authorityPath, "nothing");
    await expect(start(files.mutualEnv)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(
        /^The configuration is invalid:\n {2}GRPC_SERVER_TLS_KEY .*no such file/,
      ),
    });
    await files.write({ server });
    await expect(start(files.mutualEnv)).rejects.toMatchObject({
      message: expect.stringContaining("GRPC_CLIENT_TLS_CACERT names a file without a certificate"),
    });
  });
});

describe("startApp() with a Unix socket", () => {
  beforeEach(() => {});

  it("decides there, in plaintext or with TLS", async () => {
    const path = join(folder, "grpc.sock");
    const app = await start({ GRPC_UDS: path });
    expect(app.grpcAddress).toEqual({ kind: "unix", path });
    expect(outcomeOf(await call(app).ask(question))).toBe("OK");
    expect(await app.close()).toBe(true);
    await expect(stat(path)).rejects.toMatchObject({ code: "ENOENT" });
    const other = await start({ ...files.mutualEnv, GRPC_UDS: path });
    expect(outcomeOf(await call(other, secure(client)).ask(question))).toBe("OK");
  });

  it("says which setting is wrong, and leaves nothing open", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(start({ ...files.env, GRPC_UDS: join(folder, "file") })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining("the path of GRPC_UDS is not a socket"),
    });
  });
});
