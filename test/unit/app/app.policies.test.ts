import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type App, startApp } from "../../../src/app/app.js";
import { loadConfig } from "../../../src/app/config/config.js";
import { parseHere } from "../../support/parse-here.js";
import { RlsClient } from "../../support/rls-client.js";
import { useStage } from "../../support/stage.js";
import { waitFor } from "../../support/wait.js";
import { XdsServer } from "../../support/xds-server.js";

const stage = useStage("test");

let app: App | undefined;
let path: string;

beforeEach(() => {
  path = join(stage.folder, "policy.yaml");
});

afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(env: Readonly<Record<string, string>>): Promise<App> {
  const loaded = loadConfig({
    flags: {},
    env: {
      HOST: "127.0.0.1",
      GRPC_HOST: "127.0.0.1",
      PORT: "0",
      GRPC_PORT: "0",
      HEADGATE_ADMIN_ADDR: "127.0.0.1:0",
      HEADGATE_CONTROL_ADDR: "127.0.0.1:0",
      HEADGATE_DRAIN_DELAY_MS: "0",
      ...env,
    },
  });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  app = await startApp(loaded.config, { parser: parseHere });
  return app;
}

async function statusOf(at: string): Promise<number> {
  if (app === undefined || app.httpAddress?.kind !== "tcp") throw new Error("no HTTP port");
  return (await fetch(`http://127.0.0.1:${app.httpAddress?.port}${at}`)).status;
}

async function outcome(): Promise<string> {
  if (app === undefined || app.grpcAddress.kind !== "tcp") throw new Error("no gRPC port");
  const client = new RlsClient(app.grpcAddress.port);
  const answer = await client.ask({ domain: "shop", descriptors: [["user=a"]] });
  client.close();
  return answer.kind === "failed" ? answer.statusName : "decided";
}

const policy = "domain: shop";

describe("startApp() without a policy", () => {
  it("is forced to serve, and takes the files when they come", async () => {
    await start({ HEADGATE_POLICY: path, FORCE_START_WITHOUT_INITIAL_CONFIG: "true" });
    expect(await statusOf("/healthcheck")).toBe(200);
    expect(await statusOf("/readyz")).toBe(503);
    expect(await outcome()).toBe("UNAVAILABLE");
    await writeFile(path, policy);
    await waitFor("it is ready", async () => (await statusOf("/readyz")) === 200);
    expect(await outcome()).toBe("decided");
  });

  it("is forced to serve also with a wrong one", async () => {
    await writeFile(path, "domain: [");
    await start({ HEADGATE_POLICY: path, FORCE_START_WITHOUT_INITIAL_CONFIG: "true" });
    expect(await outcome()).toBe("UNAVAILABLE");
  });

  it("waits for the control plane before it says that it serves", async () => {
    const server = await XdsServer.start(stage);
    await start({ CONFIG_TYPE: "GRPC_XDS_SOTW", CONFIG_GRPC_XDS_SERVER_URL: server.address });
    await server.requestWith("the subscription", ({ nonce }) => nonce === "");
    expect(await statusOf("/healthcheck")).toBe(500);
    expect(await outcome()).toBe("UNAVAILABLE");
    server.hold("1", [{ name: "shop", domain: "shop" }]);
    await waitFor("it serves", async () => (await statusOf("/healthcheck")) === 200);
    expect(await outcome()).toBe("decided");
  });

  it("ends while it waits", async () => {
    const server = await XdsServer.start(stage);
    const started = await start({
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_URL: server.address,
    });
    await server.requestWith("the subscription", ({ nonce }) => nonce === "");
    expect(await started.close()).toBe(true);
    await waitFor("the stream is gone", () => server.streamCount() === 0);
  });
});

describe("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", () => {
  it("says NOT_SERVING as long as, and again when, no domain is active", async () => {
    const server = await XdsServer.start(stage);
    await start({
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_URL: server.address,
      FORCE_START_WITHOUT_INITIAL_CONFIG: "true",
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true",
    });
    const healthIs = (status: number): Promise<unknown> =>
      waitFor(`health is ${status}`, async () => (await statusOf("/healthcheck")) === status);
    await healthIs(500);
    server.hold("1", [{ name: "shop", domain: "shop" }]);
    await healthIs(200);
    server.hold("2", []);
    await healthIs(500);
    expect(await statusOf("/readyz")).toBe(503);
    server.hold("3", [{ name: "shop", domain: "shop" }]);
    await healthIs(200);
  });

  it("looks at the files, too", async () => {
    await writeFile(path, policy);
    await start({ HEADGATE_POLICY: path, HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true" });
    expect(await statusOf("/healthcheck")).toBe(200);
  });
});
