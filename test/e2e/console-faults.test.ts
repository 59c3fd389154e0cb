import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keyRoute } from "../../src/console/data/route.js";
import { adminClients } from "../support/admin.js";
import type { ConsolePage } from "../support/console-page.js";
import {
  type ConsoleRig,
  startConsoleRig,
  startMortalConsoleRig,
  tokens,
} from "../support/console-rig.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
let rig: ConsoleRig<HeadgateProcess>;
let console: ConsolePage;

/** What somebody may call themselves. */
const hostile = {
  markup: `<img src=x onerror="document.title='owned'"><script>alert(1)</script>`,
  turned: "\u202egnp.exe\u2066",
  long: "x".repeat(4_096),
  quoted: `a"b'c,d=e\\f/../#?&%41`,
} as const;

beforeAll(async () => {
  rig = await startMortalConsoleRig(stage);
  console = await rig.open("operator");
});

afterAll(() => console.context.close());

/** Asks the first Headgate itself: no header holds all that a descriptor may. */
async function ask(user: string, times = 1): Promise<void> {
  const [headgate] = rig.gateway.headgates;
  const descriptors = [{ entries: [{ key: "user", value: user }] }];
  for (let i = 0; i < times; i += 1) await headgate.postJson({ domain: "edge", descriptors });
}

describe("what a caller sends", () => {
  it.each(Object.entries(hostile))("stays text: %s", async (_name, value) => {
    const { page } = console;
    await ask(value, 5);
    const shown = value === hostile.turned ? "\\u{202e}gnp.exe\\u{2066}" : value.slice(0, 5);
    // So long a key is counted, and not remembered by its name.
    if (value === hostile.long) await console.show(keyRoute("edge", [{ key: "user", value }]));
    else {
      await console.show("#/rule/edge/user");
      const denied = page.locator("section", { hasText: "Denied most" });
      await denied.locator("a", { hasText: shown }).first().click();
    }
    await console.see("over its limit");
    await page.click("text=Freeze …");
    await page.fill("dialog label:has-text('Reason') input", value.slice(0, 400));
    await page.click('dialog button:text-is("Freeze")');
    await console.see("on all replicas within a second");
    await page.click("dialog >> text=See the audit log");
    await console.see(shown);
    for (const hash of ["#/overrides", "#/tail?sample=1", "#/"]) {
      await console.show(hash);
      await console.see(/Overrides|Live tail|Decisions per second/);
      expect(await console.overflow()).toBe(0);
    }
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.title()).not.toBe("owned");
    expect(console.troubles).toEqual([]);
  });
});

describe("many keys", () => {
  it("are shown by the most denied of ten thousand", async () => {
    const [headgate] = rig.gateway.headgates;
    for (let i = 0; i < 100; i += 1) {
      const descriptors = Array.from({ length: 100 }, (_, k) => {
        return { entries: [{ key: "user", value: `many-${i * 100 + k}` }] };
      });
      await headgate.postJson({ domain: "edge", descriptors });
    }
    await ask("many-7", 12);
    await console.show("#/rule/edge/user");
    await console.see("user=many-7");
    expect(console.troubles).toEqual([]);
  });
});

describe("what fails while the console is open", () => {
  it("is a store that is away: limits pass uncounted, and the console says so", async () => {
    await console.show("#/");
    await console.see("Decisions per second");
    console.expectLoss();
    await rig.redis.kill();
    await waitFor(
      "the console tells of the outage",
      async () => {
        await ask("u1");
        return (await console.page.textContent("main"))?.includes("The store does not answer");
      },
      { withinMs: 30_000, everyMs: 200 },
    );
    await rig.redis.restart();
    await waitFor(
      "it is over",
      async () => {
        await ask("u1");
        return !(await console.page.textContent(".verdict"))?.includes("does not answer");
      },
      { withinMs: 60_000, everyMs: 200 },
    );
    await console.see("store away");
  });

  it("is another replica: it is missing, and not zero", async () => {
    const [, second] = rig.gateway.headgates;
    await console.show("#/");
    await console.see("all answer");
    await second?.process.kill();
    await console.see(/1 replica not answering|replica not answering/, 30_000);
    await second?.restart();
    await console.see("all answer", 60_000);
  });

  it("is the replica itself: what is known stays, and the connection heals", async () => {
    const [first] = rig.gateway.headgates;
    await console.show("#/limits");
    await console.see("Hits");
    await first?.process.kill();
    await console.see("No answer since");
    await console.see("Hits");
    await first?.restart();
    await console.see("Your session has ended", 60_000);
    await console.page.fill("input[type=password]", tokens.operator);
    await console.page.click('button:text-is("Sign in")');
    await waitFor("it is healed", async () => {
      return !(await console.page.textContent("body"))?.includes("No answer since");
    });
  });
});

// Last, since each replica that starts would parse them.
describe("many rules", () => {
  it("are scrolled and filtered without all of them in the page", async () => {
    const { page } = console;
    const rules = Array.from({ length: 10_000 }, (_, i) => {
      const limit = `{unit: day, requests_per_unit: ${i + 1}}`;
      return `        - {key: user, value: u${i}, rate_limit: ${limit}}`;
    });
    const text = [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: many}",
      "spec:",
      "  rateLimits:",
      "    - domain: edge",
      "      descriptors:",
      ...rules,
    ].join("\n");
    // The page of a rule that goes away asks for it until it knows.
    await console.show("#/");
    await applyPolicy(text);
    await console.show("#/limits");
    await console.see("10,000 rules of policy", 60_000);
    expect(await page.locator("tbody tr").count()).toBeLessThan(100);
    await page.fill("input[type=search]", "u9876");
    await console.see("u9876");
    await console.see("1 of 10,000");
    expect(page.url()).toContain("q=u9876");
    await page.fill("input[type=search]", "");
    const scrolled = "document.querySelector('.rows').scrollTo(0, 9000 * 34)";
    await page.evaluate(scrolled);
    await console.see(/u9[0-9]{3}/);
    expect(console.troubles).toEqual([]);
  });

  async function applyPolicy(text: string): Promise<void> {
    const port = rig.gateway.headgates[0].portOf("admin");
    const { policies } = adminClients(port, { token: tokens.operator });
    const { policy } = await policies.getPolicy({});
    const { problems } = await policies.applyPolicy({
      files: [{ file: "many.yaml", text }],
      expectedVersion: policy?.version ?? "",
      reason: "many",
    });
    expect(problems).toEqual([]);
  }
});

describe("a console that only reads", () => {
  it("shows an operator no button that changes anything", async () => {
    const env = { HEADGATE_CONSOLE: "read-only" };
    const other = await startConsoleRig(stage, { env, browser: rig.browser });
    const page = await other.open("operator");
    await page.show("#/key/edge/user=ann");
    await page.see("read-only");
    await page.see("fits now");
    expect(await page.page.locator("text=Override …").count()).toBe(0);
    expect(page.troubles).toEqual([]);
  });
});
