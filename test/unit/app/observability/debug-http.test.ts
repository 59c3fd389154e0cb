import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../../../../src/app/base/listen.js";
import {
  createDebugServer,
  type MayProfile,
} from "../../../../src/app/observability/debug-http.js";
import { profileSecondsMax } from "../../../../src/app/observability/debug-profiles.js";
import { ControlPlane } from "../../../../src/rpc/control/control-plane.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { useStage } from "../../../support/stage.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";
import { waitFor, within } from "../../../support/wait.js";

const debugHttp = new URL("../../../../src/app/observability/debug-http.ts", import.meta.url).href;

/** A debug port in a process that holds little else. */
const smallServer = `
  import { tsImport } from "tsx/esm/api";
  const module = ${JSON.stringify(debugHttp)};
  const { createDebugServer } = await tsImport(module, import.meta.url);
  const server = createDebugServer({ mayProfile: async () => true, onBug: console.error });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

const stage = useStage("test");

let sources: TestSources;
let clock: FakeClock;
let bugs: unknown[];
let port: number;
let close: () => Promise<void>;

async function start(mayProfile: MayProfile | undefined): Promise<void> {
  const plane = new ControlPlane({ clock, random: new FakeRandom() });
  const fleet = { plane, nowMs: () => clock.monotonicMs() };
  const onBug = (bug: unknown): void => void bugs.push(bug);
  const server = createDebugServer({ sources, fleet, clock, mayProfile, onBug });
  const settings = { hostSetting: "DEBUG_HOST", portSetting: "DEBUG_PORT", connectionsMax: 10 };
  ({ port } = await listen(server, { host: "127.0.0.1", port: 0, ...settings }));
  close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}

beforeEach(async () => {
  sources = createTestSources();
  clock = new FakeClock();
  bugs = [];
  await start(async () => true);
});

afterEach(async () => {
  await close();
  expect(bugs).toEqual([]);
});

function get(path: string, init?: RequestInit): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, init);
}

async function text(path: string): Promise<string> {
  return (await get(path)).text();
}

/** The status of an answer to somebody who believes to speak to another host. */
function statusFor(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once("error", reject);
    sent.end();
  });
}

describe("the debug port", () => {
  it("says what there is", async () => {
    const index = await text("/");
    for (const path of ["/debug/pprof/heap", "/debug/pprof/profile", "/rlconfig", "/stats"]) {
      expect(index).toContain(`${path}: `);
    }
    expect(await text("/debug/pprof/")).toBe(index);
    const missing = await get("/nothing");
    expect(missing.status).toBe(404);
    expect(await missing.text()).toContain("/rlconfig: ");
  });

  it("shows statistics in the order of their names, of rules that were met", async () => {
    sources.count(0, { total: 3, within: 2, over: 1 });
    const lines = (await text("/stats")).trimEnd().split("\n");
    expect(lines).toContain("ratelimit.service.rate_limit.shop.user.total_hits: 3");
    expect(lines).toContain("ratelimit.service.config_load_success: 2");
    expect(lines).toEqual([...lines].sort());
    expect(lines.join()).not.toContain("plan_free");
  });

  it("shows only the statistics that hold the filter", async () => {
    sources.count(0, { total: 3 });
    expect(await text("/stats?filter=total_hits")).toBe(
      "ratelimit.service.rate_limit.shop.user.total_hits: 3\n",
    );
  });

  it("shows the active limits, or nothing without a policy", async () => {
    expect(await text("/rlconfig")).toContain(
      "shop.plan_free.user: unit=MINUTE requests_per_unit=5, shadow_mode: false, " +
        "quota_mode: false\n",
    );
    sources.policy = undefined;
    expect(await text("/rlconfig")).toBe("");
  });

  it("answers GET and HEAD, and nothing else", async () => {
    const posted = await get("/stats", { method: "POST", body: "x" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"]);
    const head = await get("/stats", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("answers to addresses and localhost, and to no name that somebody may own", async () => {
    expect(await statusFor("0:6070")).toBe(200);
    expect(await statusFor("localhost:6070")).toBe(200);
    expect(await statusFor("[::1]:6070")).toBe(200);
    expect(await statusFor("attacker.example:6070")).toBe(403);
  });

  it("takes CPU profiles, one at a time", async () => {
    const first = get("/debug/pprof/profile?seconds=2");
    await waitFor("the profile has begun", () => clock.timerCount === 1);
    expect((await get("/debug/pprof/profile?seconds=1")).status).toBe(409);
    expect((await get("/debug/pprof/heap")).status).toBe(409);
    clock.advance(2_000);
    const answer = await first;
    expect(answer.headers.get("content-disposition")).toContain("headgate.cpuprofile");
    expect(await answer.json()).toMatchObject({ nodes: expect.anything() });
  });

  it("ends a CPU profile whose caller has gone", async () => {
    const abort = new AbortController();
    const asked = get("/debug/pprof/profile", { signal: abort.signal }).catch(() => "gone");
    await waitFor("the profile has begun", () => clock.timerCount === 1);
    abort.abort();
    expect(await asked).toBe("gone");
    await waitFor("the profile has ended", () => clock.timerCount === 0);
    const next = get("/debug/pprof/profile?seconds=1");
    await waitFor("the next has begun", () => clock.timerCount === 1);
    clock.advance(1_000);
    expect((await next).status).toBe(200);
  });

  it.each(["0", String(profileSecondsMax + 1), "1.5", "-1", "x", ""])(
    "refuses a profile of %j seconds",
    async (seconds) => {
      expect((await get(`/debug/pprof/profile?seconds=${seconds}`)).status).toBe(400);
    },
  );

  it("streams a heap snapshot, and takes the next one after it", async () => {
    // The heap of the tests' own process is a hundred times as large.
    const program = stage.spawn({
      name: "debug server",
      file: process.execPath,
      args: ["--input-type=module", "--eval", smallServer],
    });
    const text = await waitFor("its port", () => /^[0-9]+$/m.exec(program.output)?.[0], {
      withinMs: 20_000,
    });
    const url = `http://127.0.0.1:${text}/debug/pprof/heap`;
    for (let i = 0; i < 2; i += 1) {
      const head = await fetch(url, { method: "HEAD" });
      expect(head.status).toBe(200);
      const answer = await fetch(url);
      expect(answer.status).toBe(200);
      const start = (await answer.text()).slice(0, 11);
      expect(start).toBe('{"snapshot"');
    }
  });

  it("says of other profiles that there are none", async () => {
    const answer = await get("/debug/pprof/goroutine");
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain("Go runtime profile");
  });

  it("takes no profile while they are off, and says how to turn them on", async () => {
    await close();
    await start(undefined);
    for (const path of ["/debug/pprof/heap", "/debug/pprof/profile?seconds=1"]) {
      const answer = await get(path);
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain("HEADGATE_DEBUG_PROFILES=true");
    }
    expect(clock.timerCount).toBe(0);
    expect(await text("/debug/pprof/")).toContain("; off");
    expect((await within("stats answer", 5_000, get("/stats"))).status).toBe(200);
  });

  it("takes profiles for who may, by what they bring along", async () => {
    await close();
    await start(async ({ authorization }) => authorization === "Bearer right");
    for (const headers of [{}, { authorization: "Bearer wrong" }]) {
      for (const path of ["/debug/pprof/heap", "/debug/pprof/profile?seconds=1"]) {
        const answer = await get(path, { headers });
        expect([answer.status, clock.timerCount]).toEqual([403, 0]);
        expect(await answer.text()).toContain("the role operator in all domains");
      }
    }
    const headers = { authorization: "Bearer right" };
    const asked = get("/debug/pprof/profile?seconds=1", { headers });
    await waitFor("the profile has begun", () => clock.timerCount === 1);
    clock.advance(1_000);
    expect((await asked).status).toBe(200);
  });
});
