import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type App, startApp } from "../../src/app/app.js";
import { type LogEvent, silentLogger } from "../../src/app/logger.js";
import { configOf, quietEnv } from "../support/configured-store.js";
import { sumOfSeries } from "../support/headgate-process.js";
import { startRedis } from "../support/redis.js";
import { gatePolicyText } from "../support/service-texts.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

interface Running {
  readonly app: App;
  readonly events: LogEvent[];
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  loop(): Promise<Record<string, unknown>>;
}

async function start(port: number): Promise<Running> {
  const path = join(stage.folder, "policy.yaml");
  await writeFile(path, gatePolicyText);
  const events: LogEvent[] = [];
  const note = (event: LogEvent): void => {
    events.push(event);
  };
  const env = { HEADGATE_POLICY: path, REDIS_URL: `127.0.0.1:${port}`, DEBUG_PORT: "0" };
  const config = configOf({ ...quietEnv, ...env });
  const app = await startApp(config, { logger: { ...silentLogger, info: note, warn: note } });
  stage.atEnd(() => app.close(0));
  const read = async (of: number | undefined, page: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${of}${page}`)).text();
  return {
    app,
    events,
    metric: async (name, labels = {}) =>
      sumOfSeries(await read(app.httpAddress.port, "/metrics"), name, labels),
    loop: async () => {
      const page: { loop: Record<string, unknown> } = JSON.parse(
        await read(app.debugAddress?.port, "/debug/fleet"),
      );
      return page.loop;
    },
  };
}

it("processes that share a Redis have one leader, and the next when that one stops", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const running = [await start(server.port), await start(server.port)];
  await waitFor("both follow one leader", async () => {
    const epochs = await Promise.all(running.map((one) => one.metric("headgate_fleet_epoch")));
    return epochs.every((epoch) => epoch === 1);
  });
  const leading = await Promise.all(running.map((one) => one.metric("headgate_fleet_leading")));
  expect(leading.toSorted()).toEqual([0, 1]);
  const [leader, other] = leading[0] === 1 ? running : running.toReversed();
  if (leader === undefined || other === undefined) throw new Error("there are two");
  const page = await other.loop();
  expect(page).toMatchObject({ isOpen: true, isLeading: false, epoch: 1 });
  expect(page["leader"]).toBe((await leader.loop())["leader"]);
  expect(leader.events).toContainEqual({ event: "leadingBegan", epoch: 1 });
  await leader.app.close(0);
  await waitFor("the other one leads", async () => {
    return (await other.metric("headgate_fleet_epoch")) === 2;
  });
  expect(await other.metric("headgate_fleet_leading")).toBe(1);
  expect(await other.metric("headgate_fleet_failed_calls_total")).toBe(0);
  expect(await other.metric("headgate_bugs_total")).toBe(0);
  const gate = { service: "orders", state: "open" };
  expect(await other.metric("headgate_admission_gate_state", gate)).toBe(1);
});
