import { beforeAll, describe, expect, it } from "vitest";
import { phone } from "../support/console-page.js";
import { type ConsoleRig, startConsoleRig } from "../support/console-rig.js";
import { QuotaClient, type QuotaClientStream } from "../support/quota-client.js";
import { wide } from "../support/site.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
let rig: ConsoleRig;
let streams: readonly QuotaClientStream[] = [];

/** Each view, and something that it says once it knows what it is about. */
const views: readonly (readonly [name: string, hash: string, says: string | RegExp])[] = [
  ["overview", "#/", "Decisions a second"],
  ["limits", "#/limits", "3 per 1h"],
  ["rule", "#/rule/edge/user", "requests_per_unit: 3"],
  ["key", "#/key/edge/user=ann", "Rule user: over its limit"],
  ["overrides", "#/overrides", "times 2"],
  ["services", "#/services", /of [0-9]+ in flight/],
  ["service", "#/service/upstream", "edge-1"],
  ["quotas", "#/quotas", "edge-3"],
  ["policy", "#/policy", "as active"],
  ["replay", "#/policy?tab=replay", "Drop an access log"],
  ["shadow", "#/policy?tab=shadow", "No shadow policy runs"],
  ["history", "#/policy?tab=history", "Applied"],
  ["tail", "#/tail?sample=1", "live"],
  ["fleet", "#/fleet", "leads"],
  ["audit", "#/audit", "launch week"],
];

beforeAll(async () => {
  rig = await startConsoleRig(stage);
  for (const user of ["ann", "ann", "ann", "ann", "ann", "bob"]) await rig.send(user);
  // Envoys with quotas, as far as Headgate sees them.
  const [first] = rig.gateway.headgates;
  const client = new QuotaClient(first.portOf("control"));
  streams = ["edge-1", "edge-2", "edge-3"].map((node) => client.open(node));
  stage.atEnd(() => {
    for (const stream of streams) stream.cancel();
  });
}, 120_000);

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
      wrong.push(...(await console.judge()));
      for (const [size, viewport] of Object.entries({ wide, phone })) {
        await console.page.setViewportSize(viewport);
        await console.picture(`${name}-${size}-${theme}`);
        const overflow = await console.overflow();
        if (overflow > 0) wrong.push(`${name}: ${overflow} px wider than the ${size} window`);
      }
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
