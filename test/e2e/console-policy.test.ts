import { beforeAll, describe, expect, it } from "vitest";
import { startAdminApp } from "../support/admin.js";
import { ConsolePage, phone } from "../support/console-page.js";
import { generatedCsv } from "../support/generated-log.js";
import { startBrowser, wide } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
let console: ConsolePage;

const policyOf = (perMinute: number) => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          shadow_mode: false
          rate_limit: {unit: minute, requests_per_unit: ${perMinute}}
        - {key: plan, rate_limit: {unit: minute, requests_per_unit: 5}}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;

/** Tests that a policy of two a minute passes. */
const tests = `policy: policy.yaml
tests:
  - name: two a minute
    steps:
      - {ask: {domain: shop, entries: {user: ann}}, times: 5, expect: {allowed: 2}}
  - name: plans have five
    steps:
      - {ask: {domain: shop, entries: {plan: free}}, times: 9, expect: {allowed: 5}}
`;

/** Four requests of one user, one that no service has, and a line that nobody can read. */
const accessLog = [
  ...[1, 2, 3, 4].map((second) => {
    const time = `2026-01-05T08:00:0${second}.000Z`;
    return JSON.stringify({ time, authority: "orders.example", "x-user": "ann", path: "/" });
  }),
  JSON.stringify({ time: "2026-01-05T08:00:09.000Z", authority: "other.example" }),
  "{nonsense",
].join("\n");

beforeAll(async () => {
  const [browser, { port }] = await Promise.all([
    startBrowser(stage),
    startAdminApp(stage, policyOf(2)),
  ]);
  console = await ConsolePage.open(browser, `http://127.0.0.1:${port}`);
});

/** The text of the editor becomes this; other files of the draft stay. */
async function write(text: string): Promise<void> {
  const { page } = console;
  await page.click(".cm-content");
  await page.keyboard.press("Control+a");
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press("Control+v");
}

describe("the editor of policies", () => {
  it("completes what the schema has at the place, and says what it is", async () => {
    const { page } = console;
    await console.show("#/policy");
    await write(policyOf(2));
    await page.click("text=shadow_mode");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("on_st");
    await page.keyboard.press("Control+Space");
    const list = page.locator(".cm-tooltip-autocomplete");
    await list.locator("li", { hasText: "on_store_failure" }).waitFor();
    await page.locator(".cm-completionInfo", { hasText: "the store is unreachable" }).waitFor();
    await list.locator("li", { hasText: "on_store_failure" }).click();
    await list.waitFor({ state: "detached" });
    await page.keyboard.press("Control+Space");
    await list.locator("li").nth(3).waitFor();
    expect(await list.locator("li").allTextContents()).toEqual(["allow", "deny", "error", "local"]);
    await list.locator("li", { hasText: "allow" }).click();
    await console.see("valid");
    expect(await page.locator(".cm-content").textContent()).toContain("on_store_failure: allow");
  });

  it("explains the key under the pointer, and marks what the validator finds", async () => {
    const { page } = console;
    await page.hover(".hg-key:text-is('shadow_mode')");
    await page.locator(".hg-doc", { hasText: "Counts and reports, but never denies." }).waitFor();
    await write(policyOf(2).replace("unit: minute", "unit: fortnight"));
    await page.waitForSelector(".cm-lint-marker-error");
    const found = page.locator(".cm-tooltip-lint");
    // A mark that is drawn anew under a pointer that rests says nothing until the pointer moves.
    const marked = await waitFor("the mark says what is wrong", async () => {
      await page.mouse.move(0, 0);
      await page.hover(".cm-lintRange-error");
      return (await found.textContent({ timeout: 1_000 }).catch(() => null)) ?? undefined;
    });
    // What is said at the mark is what is said beside the text.
    const said = await page.locator(".findings li p").first().textContent();
    expect(said).toContain(marked);
  });

  it("keeps keys for itself that elsewhere lead to other views", async () => {
    const { page } = console;
    await write(policyOf(2));
    await page.keyboard.press("Control+End");
    await page.keyboard.type("# g s /?");
    expect(await page.locator(".cm-content").textContent()).toContain("# g s /?");
    expect(await page.locator("dialog").count()).toBe(0);
    expect(page.url()).toContain("#/policy");
    await page.click("text=Discard the draft");
    await console.see("as active");
    expect(console.troubles).toEqual([]);
  });
});

describe("a draft of a policy", () => {
  /** Runs the tests of the draft; what is said of each. */
  async function runTests(): Promise<readonly string[]> {
    const { page } = console;
    await page.click("text=Run tests");
    const result = page.locator("section", { hasText: "Run tests" }).locator("[role=status]");
    await result.waitFor();
    await page.waitForSelector("button:text-is('Run tests'):enabled");
    const lines = result.locator(".badge, .findings li");
    return (await lines.allTextContents()).map((text) => text.trim());
  }

  it("is tested: what fails is shown with what was expected, and what passes", async () => {
    const { page } = console;
    await console.show("#/policy");
    const file = { mimeType: "text/yaml", buffer: Buffer.from(tests), name: "shop.tests.yaml" };
    await page.setInputFiles("input[aria-label='Add a file to the draft']", file);
    expect(await runTests()).toEqual([
      "2 tests passed",
      "two a minute (5 calls)",
      "plans have five (9 calls)",
    ]);
    await page.locator("main button", { hasText: /^policy\.yaml$/ }).click();
    await write(policyOf(3));
    await console.see("2 per minute becomes 3 per minute");
    const [sum, first, second] = await runTests();
    expect(sum).toBe("1 of 2 tests failed");
    expect(first).toMatch(/^two a minute .*Expected 2 of 5 allowed, got 3 were \(over: user\)\.$/);
    expect(second).toBe("plans have five (9 calls)");
  });

  it("replays an access log that is dropped: who would be treated differently", async () => {
    const { page } = console;
    await page.click("text=Replay a log");
    await console.see("and your draft");
    const dataTransfer = await page.evaluateHandle(
      `((text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "access.log"));
        return data;
      })(${JSON.stringify(accessLog)})`,
    );
    await page.dispatchEvent(".drop", "drop", { dataTransfer });
    await console.see("1 of 6 lines cannot be read");
    const tiles = await page.locator(".tile").allTextContents();
    expect(tiles).toEqual([
      expect.stringMatching(/^Lines6/),
      expect.stringMatching(/^Denied, active2/),
      expect.stringMatching(/^Denied, draft1/),
      expect.stringMatching(/^Newly denied0/),
      expect.stringMatching(/^Newly allowed1/),
    ]);
    const row = page.locator("[aria-label='Replayed rules'] tbody tr").first();
    expect(await row.locator("td").allTextContents()).toEqual([
      "shop/user",
      "4",
      "2",
      "1",
      expect.stringContaining("ann"),
    ]);
    await page.waitForSelector("[role=img][aria-label^='Over the duration of the log: requests']");
    expect(console.troubles).toEqual([]);
  });
});

describe("a recommendation", () => {
  it("reads a log in the browser, and takes what it proposes into a draft", async () => {
    const { page } = console;
    await console.show("#/policy?tab=recommend");
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() !== "GET") sent.push(request.postData() ?? "");
    });
    const users = generatedCsv({ seed: 1, days: 2, callers: 50, perDay: 1_000, zipf: 0.5 });
    const log = users
      .replace("x-user", "x-user,authority")
      .replaceAll(/^(2.*)$/gm, "$1,orders.example");
    const file = { mimeType: "text/csv", buffer: Buffer.from(log), name: "<i>access.csv" };
    await page.setInputFiles("input[aria-label='Access log']", file);
    await page.waitForSelector(".report figure");
    expect(await page.locator(".report").textContent()).toContain("callers refused on a day");
    await console.see("<i>access.csv");
    expect(await console.judge()).toEqual([]);
    for (const [size, viewport] of Object.entries({ wide, phone })) {
      await page.setViewportSize(viewport);
      await console.picture(`recommendation-${size}`);
      expect(await console.overflow()).toBe(0);
    }
    await page.setViewportSize(wide);
    await page.click("text=Edit the policy with these numbers");
    await console.see(/shop\/user: 2 per minute becomes \d+ per minute/);
    expect(sent.filter((body) => body.includes("user-1"))).toEqual([]);
    await page.click("text=Discard the draft");
    await console.see("as active");
    expect(console.troubles).toEqual([]);
  });
});

describe("a simulation", () => {
  /** Two callers of a service of the policy; the name of one of them is markup. */
  const scenario = (rate: number, duration = "4s") => `duration: ${duration}
services: [{name: orders, workers: 4, serviceTime: 20ms}]
callers:
  - {name: web, rate: ${rate}, deadline: 200ms, keys: {header: x-user, count: 20}}
  - {name: "<img src=x onerror=alert(1)>", rate: 5}
objectives: [goodput >= 0.9, web.refused <= 0.5]
`;

  /** Waits until this is said of what was written. */
  async function validated(text: string | RegExp): Promise<void> {
    const title = console.page.locator("h2:text-is('Validation')");
    await console.page.locator("section", { has: title, hasText: text }).waitFor();
  }

  const valid = /^Validationvalid$/;

  /** What the plots of the result are of. */
  async function plots(): Promise<readonly string[]> {
    await console.page.waitForSelector(".report figure");
    return console.page.locator(".report figure h3").allTextContents();
  }

  it("begins with services of the active policy, and marks mistakes in the scenario", async () => {
    const { page } = console;
    await console.show("#/simulate");
    await page.waitForSelector(".cm-content");
    expect(await page.locator(".cm-content").textContent()).toContain('name: "orders"');
    await validated(valid);
    await page.click(".cm-content");
    await page.keyboard.press("Control+End");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "warmUp" }).waitFor();
    await write(scenario(200).replace("workers: 4", "wokers: 4"));
    await page.waitForSelector(".cm-lint-marker-error");
    await validated('scenario.yaml:2:27 "wokers" is unknown');
    expect(await page.isDisabled("button:text-is('Run')")).toBe(true);
  });

  it("runs with the active policy: verdicts, plots and tables, at any width", async () => {
    const { page } = console;
    await write(scenario(200));
    await page.click("button:text-is('Run')");
    await console.see("objectives missed");
    const report = page.locator(".report");
    expect(await report.textContent()).toMatch(/web\.refused <= 0\.5.*✗ 9\d\.\d/);
    expect(await report.textContent()).toContain("caller <img src=x onerror=alert(1)>");
    expect(await plots()).toContain("In flight and limit: orders");
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      expect(await console.judge()).toEqual([]);
      for (const [size, viewport] of Object.entries({ wide, phone })) {
        await page.setViewportSize(viewport);
        await console.picture(`simulation-${size}-${colorScheme}`);
        expect(await console.overflow()).toBe(0);
      }
    }
    await page.setViewportSize(wide);
  });

  it("compares values of a setting, and takes one of them into a draft", async () => {
    const { page } = console;
    await page.fill(
      "label:has-text('Compare a setting') input",
      "user.rate_limit.requests_per_unit",
    );
    await page.fill("label:has-text('Values') input", "2,9000");
    await validated(valid);
    await page.click("button:text-is('Run')");
    const titles = page.locator(".report table").first().locator("thead th");
    await titles.nth(3).waitFor();
    expect((await titles.allTextContents()).slice(2)).toEqual([
      "user.rate_limit.requests_per_unit=2",
      "user.rate_limit.requests_per_unit=9000",
    ]);
    expect(await plots()).toContain("Goodput");
    await page.click("text=Edit the policy with user.rate_limit.requests_per_unit=9000");
    await console.see("2 per minute becomes 9,000 per minute");
    await page.click("text=Discard the draft");
    await console.see("as active");
  });

  it("refuses what is too much, and ends what takes too long", async () => {
    const { page } = console;
    await console.show("#/simulate");
    await page.waitForSelector(".cm-content");
    await write("#".repeat(5_000_000));
    await validated("1 problem");
    await write(scenario(100_000, "24h"));
    await validated("8,640,432,000 requests are too many");
    await write(scenario(4_000, "1h"));
    await validated(valid);
    await page.click("button:text-is('Run')");
    await page.locator("progress").waitFor();
    // It goes on where nobody looks.
    await page.click("nav >> text=Audit log");
    await page.waitForSelector("h1:text-is('Audit log')");
    await page.click("nav >> text=Simulate");
    await page.click("button:text-is('Cancel')");
    await page.locator("progress").waitFor({ state: "detached" });
    await page.selectOption("label:has-text('Scenario') select", "retry-storm");
    await validated(valid);
    expect(console.troubles).toEqual([]);
  });
});
