import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type ConsolePage, phone } from "../support/console-page.js";
import { type ConsoleRig, startConsoleRig } from "../support/console-rig.js";
import { runOpenLoop } from "../support/open-loop-load.js";
import { QuotaClient, type QuotaClientStream } from "../support/quota-client.js";
import { startSaturableUpstream } from "../support/saturable-upstream.js";
import { wide } from "../support/site.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
/** It serves forty requests a second. */
const slow = { workerCount: 4, meanServiceMs: 100, seed: 1, reportsLoad: false };
let rig: ConsoleRig;
let streams: readonly QuotaClientStream[] = [];

/** Each view, and something that it says once it knows what it is about. */
const views: readonly (readonly [name: string, hash: string, says: string | RegExp])[] = [
  ["overview", "#/", "Decisions per second"],
  ["limits", "#/limits", "3 per 1h"],
  ["rule", "#/rule/edge/user", "requests_per_unit: 3"],
  ["key", "#/key/edge/user=ann", "Rule user: over its limit"],
  ["overrides", "#/overrides", "times 2"],
  ["services", "#/services", /of [0-9]+ in flight/],
  ["service", "#/service/upstream", "edge-1"],
  ["signal", "#/service/ledger", /all requests\s*7\.25/],
  ["signal-missing", "#/service/search", /search signal missing.*missing SIGNAL_/s],
  ["no-rooms", "#/rooms", "no waiting rooms"],
  ["quotas", "#/quotas", "edge-3"],
  ["policy", "#/policy", "as active"],
  ["replay", "#/policy?tab=replay", "Drop an access log"],
  ["shadow", "#/policy?tab=shadow", "No shadow policy runs"],
  ["history", "#/policy?tab=history", "Applied"],
  ["tail", "#/tail?sample=1", "live"],
  ["fleet", "#/fleet", "leads"],
  ["audit", "#/audit", "launch week"],
];

/** Views of a service, and how each says that it sheds. */
const overloadedViews = [
  ["overview", "#/", /orders(?: and 1 other service)? overloaded: [1-9][0-9] % shed/],
  ["services", "#/services", /orders(?:shedding|gate closed)/],
  ["service", "#/service/orders", /orders (?:shedding|gate closed)/],
] as const;

beforeAll(async () => {
  const { port: upstreamPort } = await startSaturableUpstream(stage, slow);
  rig = await startConsoleRig(stage, { envoy: { upstreamPort } });
  for (const user of ["ann", "ann", "ann", "ann", "ann", "bob"]) await rig.send(user);
  // Envoys with quotas, as far as Headgate sees them.
  const [first] = rig.gateway.headgates;
  const client = new QuotaClient(first.portOf("control"));
  streams = ["edge-1", "edge-2", "edge-3"].map((node) => client.open(node));
  stage.atEnd(() => {
    for (const stream of streams) stream.cancel();
  });
});

// A page that is left open goes on to ask and to draw.
afterEach(async () => {
  for (const context of rig.browser.contexts()) await context.close();
});

/** Takes pictures of a view at both widths; tells what is wrong with it. */
async function judgeLooks(console: ConsolePage, name: string): Promise<readonly string[]> {
  const wrong = [...(await console.judge())];
  for (const [size, viewport] of Object.entries({ wide, phone })) {
    await console.page.setViewportSize(viewport);
    await console.picture(`${name}-${size}`);
    const overflow = await console.overflow();
    if (overflow > 0) wrong.push(`${name}: ${overflow} px wider than the ${size} window`);
  }
  return wrong;
}

describe.each(["light", "dark"] as const)("the console, %s", (theme) => {
  it("shows each view at any width to everybody, and the browser complains of none", async () => {
    const console = await rig.open("operator", theme);
    const wrong: string[] = [];
    if (theme === "light") await giveOverride();
    for (const [name, hash, says] of views) {
      await console.page.setViewportSize(wide);
      if (name === "quotas") reportUsage();
      await console.show(hash);
      // An Envoy may take its time to join.
      await console.see(says, 60_000);
      // The editor is loaded by itself, and stands in a shadow root.
      if (name === "policy") await console.page.waitForSelector(".cm-content");
      wrong.push(...(await judgeLooks(console, `${name}-${theme}`)));
    }
    expect([...wrong, ...console.troubles]).toEqual([]);
  }, 240_000);

  /** It counts for as long as an assignment holds. */
  function reportUsage(): void {
    for (const [i, stream] of streams.entries()) {
      const usages = ["acme", "globex"].map((tenant, k) => {
        return {
          id: { quota: "per-tenant", tenant },
          allowed: 100 + 150 * Math.abs(i - k),
          elapsedSeconds: 5,
        };
      });
      stream.report("edge", usages);
    }
  }

  /** So that there is one to be seen. */
  async function giveOverride(): Promise<void> {
    const console = await rig.open("operator");
    await console.show("#/key/edge/user=vip");
    await console.page.click("text=Override …");
    await console.page.fill("label:has-text('Reason') input", "launch week");
    await console.page.click("text=Set override");
    await console.see("on all replicas within a second");
    await console.context.close();
  }
});

it("shows in a narrow window which view one looks at", async () => {
  const console = await rig.open("operator");
  const { page } = console;
  await page.setViewportSize(phone);
  for (const name of ["audit", "overview", "fleet"]) {
    await console.show(`#/${name === "overview" ? "" : name}`);
    const box = await page.locator("nav [aria-current=page]").first().boundingBox();
    const { x, width } = box ?? { x: -1, width: 0 };
    expect(x, name).toBeGreaterThanOrEqual(0);
    expect(x + width, name).toBeLessThanOrEqual(phone.width);
  }
});

describe("a service that is asked for three times what it can do", () => {
  /** Sends it, with as much of each class. */
  async function overload(host: string, durationMs: number): Promise<void> {
    const classes = ["critical", "high", "normal", "low"].map((name) => {
      return { name, share: 0.25, headers: { host, "x-request-priority": name } };
    });
    const ports = [rig.gateway.envoy.port];
    const order = { ports, perSecond: 120, deadlineMs: 5_000, callerCount: 10, seed: 1 };
    await runOpenLoop({ ...order, classes, durationMs });
  }

  it("is seen where it is Envoy that refuses", async () => {
    const console = await rig.open("operator");
    await console.show("#/");
    const load = overload("other.example", 6_000);
    await console.see(/upstream overloaded: Envoys refuse [1-9][0-9]/);
    await console.show("#/service/upstream");
    await console.see("upstream breakers refuse");
    await console.picture("overload-breakers-wide-light");
    await load;
    expect(console.troubles).toEqual([]);
  });

  it("is seen from afar in each view that has it", async () => {
    const pages = { light: await rig.open("operator"), dark: await rig.open("operator", "dark") };
    const wrong: string[] = [];
    const load = overload("orders.example", 15_000);
    for (const [theme, console] of Object.entries(pages)) {
      for (const [name, hash, says] of overloadedViews) {
        await console.page.setViewportSize(wide);
        await console.show(hash);
        await console.see(says);
        wrong.push(...(await judgeLooks(console, `overload-${name}-${theme}`)));
      }
    }
    await load;
    expect([...wrong, ...pages.light.troubles, ...pages.dark.troubles]).toEqual([]);
  });
});
