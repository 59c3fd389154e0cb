import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { AdminCallLog } from "../../../../src/app/access/admin-call-log.js";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import type { StatsChoice } from "../../../../src/app/config/stats-choice.js";
import {
  openStatsListeners,
  type StatsListeners,
} from "../../../../src/app/observability/stats-listeners.js";
import { ControlPlane } from "../../../../src/rpc/control/control-plane.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { createTestSources } from "../../../support/stats-sources.js";

let events: LogEvent[];
let open: StatsListeners[];
let taken: ReturnType<typeof createServer> | undefined;

beforeEach(() => {
  events = [];
  open = [];
  taken = undefined;
});

afterEach(async () => {
  for (const listeners of open) await listeners.close();
  taken?.close();
});

const note = (event: LogEvent): void => {
  events.push(event);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

async function start(
  stats: StatsChoice,
  { host = "127.0.0.1", port = 0, monitoringPort = undefined as number | undefined } = {},
): Promise<StatsListeners> {
  const clock = new FakeClock();
  const plane = new ControlPlane({ clock, random: new FakeRandom() });
  const listeners = await openStatsListeners({
    config: {
      stats,
      debugHost: host,
      debugPort: port,
      debugProfiles: false,
      monitoringAddress:
        monitoringPort === undefined ? undefined : { host: "127.0.0.1", port: monitoringPort },
    },
    access: undefined,
    calls: new AdminCallLog(clock, logger),
    clock,
    fleet: { plane, nowMs: () => clock.monotonicMs() },
    logger,
    sources: createTestSources(),
    metrics: { contentType: "text/plain; version=0.0.4", render: async () => "own_metric 1\n" },
    monitoringServer: createHttpServer((_, response) => response.end("monitored")),
    onBug: () => {},
  });
  open.push(listeners);
  return listeners;
}

async function takePort(): Promise<number> {
  const server = createServer();
  taken = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

const prometheus = { path: "/all", isMilliseconds: false, tags: [] };

describe("openStatsListeners()", () => {
  it("serves the reference's series, and nothing beside them", async () => {
    const address = { host: "127.0.0.1", port: 0 };
    const { prometheusAddress } = await start({ prometheus: { ...prometheus, address } });
    const url = `http://127.0.0.1:${prometheusAddress?.port}`;
    const answer = await fetch(`${url}/all`);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4");
    const text = await answer.text();
    expect(text).toContain("ratelimit_service_config_load_success 2");
    expect(text).toContain("own_metric 1");
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
  });

  it("opens the monitoring port where one is asked for, and closes it", async () => {
    expect((await start({})).monitoringAddress).toBeUndefined();
    const listeners = await start({}, { monitoringPort: 0 });
    const url = `http://127.0.0.1:${listeners.monitoringAddress?.port}/`;
    expect(await (await fetch(url)).text()).toBe("monitored");
    await listeners.close();
    await expect(fetch(url)).rejects.toThrow();
  });

  it("fails when the monitoring port is taken, naming it", async () => {
    await expect(start({}, { monitoringPort: await takePort() })).rejects.toMatchObject({
      code: "LISTEN_FAILED",
      message: expect.stringContaining("HEADGATE_MONITORING_ADDR"),
    });
  });

  it("leaves no monitoring port open when the port for scrapers is taken", async () => {
    const address = { host: "127.0.0.1", port: await takePort() };
    const failing = start({ prometheus: { ...prometheus, address } }, { monitoringPort: 0 });
    await expect(failing).rejects.toMatchObject({ code: "LISTEN_FAILED" });
    const opened = events.find(({ event }) => event === "monitoringListening");
    const { port } = z.object({ port: z.number() }).parse(opened?.["address"]);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });

  it("fails when the port for scrapers is taken, naming it", async () => {
    const address = { host: "127.0.0.1", port: await takePort() };
    await expect(start({ prometheus: { ...prometheus, address } })).rejects.toMatchObject({
      code: "LISTEN_FAILED",
      message: expect.stringContaining("PROMETHEUS_ADDR"),
    });
  });

  it("goes on without a debug port when it is taken, and warns", async () => {
    const { debugAddress } = await start({}, { port: await takePort() });
    expect(debugAddress).toBeUndefined();
    expect(events).toMatchObject([{ event: "debugPortFailed" }]);
  });

  it("opens no debug port without a host, and warns of one that others reach", async () => {
    expect((await start({}, { host: "" })).debugAddress).toBeUndefined();
    expect(events).toEqual([]);
    expect((await start({}, { host: "0.0.0.0" })).debugAddress).toBeDefined();
    expect(events).toMatchObject([{ event: "debugListening" }, { event: "debugExposed" }]);
  });

  it("leaves nothing open when it is closed", async () => {
    const listeners = await start({});
    const url = `http://127.0.0.1:${listeners.debugAddress?.port}/`;
    expect((await fetch(url)).status).toBe(200);
    await listeners.close();
    await expect(fetch(url)).rejects.toBeInstanceOf(Error);
  });
});
