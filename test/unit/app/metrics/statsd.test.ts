import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import type { StatsdChoice } from "../../../../src/app/config/stats-choice.js";
import { StatsdReporter } from "../../../../src/app/metrics/statsd.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { freePort } from "../../../support/free-port.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";
import { countedBy, startTcpStatsd, startUdpStatsd } from "../../../support/statsd-server.js";
import { waitFor, within } from "../../../support/wait.js";

const hitsName = "ratelimit.service.rate_limit.shop.user.total_hits";

let sources: TestSources;
let clock: FakeClock;
let events: string[];
let closers: (() => unknown)[];
const stage = { atEnd: (close: () => unknown) => closers.push(close) };

beforeEach(() => {
  sources = createTestSources();
  clock = new FakeClock();
  events = [];
  closers = [];
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

const note = (event: LogEvent): void => {
  events.push(event.event);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

function start(port: number, fields: Partial<StatsdChoice> = {}): StatsdReporter {
  const choice = {
    kind: "statsd",
    protocol: "udp",
    host: "127.0.0.1",
    port,
    flushMs: 1_000,
    tags: [],
    ...fields,
  } as StatsdChoice;
  const reporter = new StatsdReporter({ choice, sources, clock, logger });
  reporter.start();
  return reporter;
}

describe("StatsdReporter", () => {
  it.each([
    { protocol: "udp", startServer: startUdpStatsd },
    { protocol: "tcp", startServer: startTcpStatsd },
  ] as const)("sends over $protocol what has changed, each interval", async (parts) => {
    const { protocol, startServer } = parts;
    const server = await startServer(stage);
    const reporter = start(server.port, { protocol });
    closers.push(() => reporter.stop());
    sources.count(0, { total: 2 });
    expect(server.packets).toEqual([]);
    clock.advance(1_000);
    await waitFor("the first flush arrives", () => countedBy(server.lines(), hitsName) === 2);
    sources.count(0, { total: 3 });
    await waitFor("the second flush arrives", () => {
      clock.advance(100);
      return countedBy(server.lines(), hitsName) === 5;
    });
    expect(server.lines()).toContain(`${hitsName}:3|c`);
  });

  it("sends what is left when it stops, and nothing after", async () => {
    const server = await startUdpStatsd(stage);
    const reporter = start(server.port);
    sources.count(0, { total: 7 });
    await reporter.stop();
    await waitFor("the last flush arrives", () => countedBy(server.lines(), hitsName) === 7);
    expect(clock.timerCount).toBe(0);
  });

  it("sends many names in several packets", async () => {
    const server = await startUdpStatsd(stage);
    const reporter = start(server.port);
    for (let i = 0; i < 200; i += 1) sources.countDetailed(0, `user_${i}`, { total: 1, within: 1 });
    await reporter.stop();
    const name = "ratelimit.service.rate_limit.shop.user_199.within_limit:1|c";
    await waitFor("the last name arrives", () => server.lines().includes(name));
    expect(server.packets.length).toBeGreaterThan(5);
    for (const packet of server.packets) expect(Buffer.byteLength(packet)).toBeLessThan(1_433);
  });

  it("is not bothered when nobody listens, and has lost nothing when somebody does", async () => {
    const port = await freePort();
    const reporter = start(port, { protocol: "tcp" });
    closers.push(() => reporter.stop());
    sources.count(0, { total: 4 });
    clock.advance(1_000);
    await waitFor("the failure is noted", () => events.includes("statsdAway"));
    const texts: string[] = [];
    const server = createServer((socket) => socket.on("data", (data) => texts.push(String(data))));
    closers.push(() => server.close());
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    await waitFor("the counts arrive", () => {
      clock.advance(100);
      return texts.join("").includes(`${hitsName}:4|c`);
    });
    await waitFor("the return is noted", () => events.includes("statsdBack"));
    expect(events).toEqual(["statsdAway", "statsdBack"]);
  });

  it("says once that a name cannot be found, and goes on trying", async () => {
    const reporter = start(8125, { host: "nobody.invalid" });
    clock.advance(1_000);
    await waitFor("the failure is noted", () => events.includes("statsdAway"));
    await waitFor("the next try is planned", () => clock.timerCount === 1);
    clock.advance(1_000);
    await reporter.stop();
    expect(events).toEqual(["statsdAway"]);
  });

  it("gives up on a receiver that takes the connection and reads nothing", async () => {
    const server = createServer((socket) => {
      socket.pause();
      socket.on("error", () => {});
      closers.push(() => socket.destroy());
    });
    closers.push(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    sources.policy = undefined;
    const endless = {
      ...sources,
      policies: sources.policies,
      redisPools: () => Array.from({ length: 200_000 }, () => pool),
    };
    const choice = { kind: "statsd", protocol: "tcp", host: "127.0.0.1" } as const;
    const reporter = new StatsdReporter({
      choice: { ...choice, port, flushMs: 1_000, tags: [] },
      sources: endless,
      clock,
      logger,
    });
    const stopping = reporter.stop();
    await waitFor("the flush is given up", () => {
      clock.advance(1_000);
      return events.includes("statsdAway");
    });
    await within("it has stopped", 10_000, stopping);
  });
});

const pool = { name: "redis_pool", counts: { activeCount: 1, openedCount: 1 } } as const;
