import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { type App, startApp } from "../../src/app/app.js";
import type { LogEvent } from "../../src/app/base/logger.js";
import { longWaitMs } from "../../src/decide/admission/service-events.js";
import { configOf, quietEnv } from "../support/configured-store.js";
import { openExchange, requestHeaders } from "../support/ext-proc.js";
import { parseHere } from "../support/parse-here.js";
import { realClock } from "../support/real-clock.js";
import { SignalServer } from "../support/signal-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

/** The linearizer: an exporter's page says how far the consumer of each database lags. */
function policyText(authority: string, staleAfter: string): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: linearizer
      hosts: [linearizer.example]
      admission: {queue: {size: 10, maxWait: 10s}}
      concurrency:
        law: signal
        per: {header: x-database, names: [orders, users]}
        signal:
          metrics: http://${authority}/metrics
          select: ${lagName}{consumergroup="linearizer"}
          by: topic
          target: 10000
          critical: 100000
          every: 100ms
          staleAfter: ${staleAfter}
          whenMissing: min
`;
}

const lagName = "kafka_consumergroup_lag";

function lagPage(lags: Readonly<Record<string, number>>): string {
  const of = (topic: string, partition: number, lag: number): string =>
    `${lagName}{consumergroup="linearizer",partition="${partition}",topic="${topic}"} ${lag}\n`;
  const lines = Object.entries(lags).map(([topic, lag]) => of(topic, 0, lag - 1) + of(topic, 1, 1));
  return `# TYPE ${lagName} gauge\n${lines.join("")}`;
}

interface Line extends LogEvent {
  readonly level: string;
  readonly sentence: string;
}

class SignalRig {
  readonly lines: readonly Line[];
  readonly #app: App;
  readonly #client: Client;

  private constructor(app: App, client: Client, lines: readonly Line[]) {
    this.#app = app;
    this.#client = client;
    this.lines = lines;
  }

  /** @param staleAfter how long a reading holds, such as "1s" */
  static async start(authority: string, staleAfter: string): Promise<SignalRig> {
    // Each test has an exporter of its own, and runs beside the other.
    const path = join(stage.folder, `${authority.replace(":", "-")}.yaml`);
    await writeFile(path, policyText(authority, staleAfter));
    const lines: Line[] = [];
    const note =
      (level: string) =>
      (event: LogEvent, sentence: string): void => {
        lines.push({ ...event, level, sentence });
      };
    const logger = {
      debug: note("debug"),
      info: note("info"),
      warn: note("warn"),
      error: note("error"),
    };
    const app = await startApp(
      configOf({ HEADGATE_POLICY: path, HEADGATE_DRAIN_GRACE_MS: "0", ...quietEnv }),
      { logger, parser: parseHere },
    );
    stage.atEnd(() => app.close(0));
    if (app.grpcAddress.kind !== "tcp") throw new Error("the test asked for a port");
    const client = new Client(`127.0.0.1:${app.grpcAddress.port}`, credentials.createInsecure());
    stage.atEnd(() => client.close());
    return new SignalRig(app, client, lines);
  }

  /** A request that stays where it gets until it is ended. */
  ask(database: string) {
    const exchange = openExchange({ client: this.#client });
    const fields = { ":path": "/", ":method": "POST", ":authority": "linearizer.example" };
    exchange.send(requestHeaders({ ...fields, "x-database": database }));
    return exchange;
  }

  async metric(series: string): Promise<number | undefined> {
    const page = await fetch(`http://127.0.0.1:${this.#app.httpAddress?.port}/metrics`);
    const line = (await page.text()).split("\n").find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length));
  }

  waitForLine(facts: LogEvent): Promise<Line> {
    const isMeant = (line: Line): boolean =>
      Object.entries(facts).every(([name, value]) => line[name] === value);
    return waitFor(`a line of ${facts.event}`, () => this.lines.find(isMeant));
  }

  async waitForCapacity(database: string, capacity: number): Promise<void> {
    const series = `headgate_admission_inflight_max{service="linearizer",key="${database}"}`;
    await waitFor(
      `${database} has ${capacity}`,
      async () => (await this.metric(series)) === capacity,
    );
  }
}

describe.concurrent("startApp(), with a signal", () => {
  it("lowers a database's capacity as its lag rises, and no other's", async () => {
    const exporter = await SignalServer.start(stage, lagPage({ orders: 5_000, users: 5_000 }));
    const rig = await SignalRig.start(exporter.authority, "60s");
    const first = [rig.ask("orders"), rig.ask("users"), rig.ask("secret-database")];
    for (const one of first) await one.answered(1);
    await rig.waitForCapacity("orders", 1_000);
    exporter.say(lagPage({ orders: 55_000, users: 5_000 }));
    await rig.waitForCapacity("orders", 505);
    await rig.waitForCapacity("users", 1_000);
    await rig.waitForLine({ event: "capacityChanged", key: "orders", to: 505 });
    exporter.say(lagPage({ orders: 100_000, users: 5_000 }));
    await rig.waitForCapacity("orders", 10);
    await rig.waitForCapacity("users", 1_000);
    await rig.waitForLine({ event: "capacityChanged", key: "orders", to: 10 });
    const orders = { service: "linearizer", key: "orders" };
    const adjusted = { level: "info", event: "capacityChanged", ...orders };
    const decreased = { level: "warn", event: "capacityDecreased", ...orders };
    expect(rig.lines.filter(({ key }) => key === "orders")).toMatchObject([
      { ...adjusted, sentence: "Adjusted capacity from 1000 to 505 (reading 55000)." },
      { ...decreased, by: 495, sentence: "Decreased capacity from 1000 to 505 (-495 permits)." },
      { ...adjusted, sentence: "Adjusted capacity from 505 to 10 (reading 100000)." },
      { ...decreased, by: 495, sentence: "Decreased capacity from 505 to 10 (-495 permits)." },
    ]);
    expect(await rig.metric('headgate_signal_reading{service="linearizer",key="orders"}')).toBe(
      100_000,
    );
    // Nine more fill it; whoever comes then waits, and nobody else does.
    for (let i = 0; i < 9; i += 1) await rig.ask("orders").answered(1);
    const waiting = rig.ask("orders");
    const series = 'headgate_admission_queue_depth{service="linearizer",key="orders"}';
    await waitFor("one waits", async () => (await rig.metric(series)) === 1);
    const [passed] = await rig.ask("users").answered(1);
    expect(passed?.response.case).toBe("requestHeaders");
    const startedMs = realClock.monotonicMs();
    await waitFor("it waits for long", () => realClock.monotonicMs() - startedMs > longWaitMs);
    first[0]?.end();
    await waiting.answered(1);
    const waited = await rig.waitForLine({ event: "waitedLong" });
    expect(waited).toMatchObject({ level: "debug", ...orders, count: 1 });
    expect(JSON.stringify(rig.lines)).not.toContain("secret-database");
  });

  it("holds the last reading while the exporter is away, and then the policy's bound", async () => {
    const exporter = await SignalServer.start(stage, lagPage({ orders: 55_000 }));
    const rig = await SignalRig.start(exporter.authority, "3s");
    await rig.ask("orders").answered(1);
    await rig.waitForCapacity("orders", 505);
    exporter.answer = (response) => response.writeHead(500).end("secret");
    await rig.waitForLine({ event: "signalFailing" });
    const labels = 'service="linearizer",source="metrics",outcome="signal_refused"';
    const polls = `headgate_signal_polls_total{${labels}}`;
    // The first failure of a process that stood still is a time-out.
    await waitFor("the refusal counts", async () => ((await rig.metric(polls)) ?? 0) > 0);
    await rig.waitForCapacity("orders", 10);
    expect(await rig.metric('headgate_signal_missing{service="linearizer"}')).toBe(1);
    exporter.say(lagPage({ orders: 5_000 }));
    await rig.waitForCapacity("orders", 1_000);
    expect(await rig.metric('headgate_signal_missing{service="linearizer"}')).toBe(0);
    expect(await rig.metric('headgate_signal_age_seconds{service="linearizer"}')).toBeLessThan(5);
    const events = rig.lines
      .map(({ event }) => event)
      .filter((event) => event.startsWith("signal"));
    expect(events).toEqual(["signalFailing", "signalMissing", "signalFound"]);
    expect(JSON.stringify(rig.lines)).not.toContain(exporter.authority);
  });
});
