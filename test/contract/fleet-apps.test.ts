import { expect, it } from "vitest";
import { startTestApp, type TestApp } from "../support/app.js";
import { startRedis } from "../support/redis.js";
import { gatePolicyText } from "../support/service-texts.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

interface Running extends TestApp {
  loop(): Promise<Record<string, unknown>>;
}

async function start(port: number): Promise<Running> {
  const env = { REDIS_URL: `127.0.0.1:${port}`, DEBUG_PORT: "0" };
  const started = await startTestApp(stage, gatePolicyText, env);
  return {
    ...started,
    loop: async () => {
      const page = await fetch(`http://127.0.0.1:${started.app.debugAddress?.port}/debug/fleet`);
      const { loop }: { loop: Record<string, unknown> } = JSON.parse(await page.text());
      return loop;
    },
  };
}

it("processes that share a Redis have one leader, and the next when that one stops", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const running = await Promise.all([start(server.port), start(server.port)]);
  await waitFor("both follow one leader", async () => {
    const terms = await Promise.all(running.map((one) => one.metric("headgate_fleet_term")));
    return terms.every((term) => term === 1);
  });
  const leading = await Promise.all(running.map((one) => one.metric("headgate_fleet_leading")));
  expect(leading.toSorted()).toEqual([0, 1]);
  const [leader, other] = leading[0] === 1 ? running : running.toReversed();
  if (leader === undefined || other === undefined) throw new Error("there are two");
  const page = await other.loop();
  expect(page).toMatchObject({ isOpen: true, isLeading: false, term: 1 });
  expect(page["leader"]).toBe((await leader.loop())["leader"]);
  expect(leader.events).toContainEqual({ event: "leadingBegan", term: 1 });
  await leader.app.close(0);
  await waitFor("the other one leads", async () => {
    return (await other.metric("headgate_fleet_term")) === 2;
  });
  expect(await other.metric("headgate_fleet_leading")).toBe(1);
  expect(await other.metric("headgate_fleet_failed_calls_total")).toBe(0);
  expect(await other.metric("headgate_internal_errors_total")).toBe(0);
  const gate = { service: "orders", state: "open" };
  expect(await other.metric("headgate_admission_gate_state", gate)).toBe(1);
});
