import { beforeAll, describe, expect, it } from "vitest";
import { startAdminApp } from "../support/admin.js";
import { ConsolePage } from "../support/console-page.js";
import { startBrowser } from "../support/site.js";
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
}, 60_000);

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
    await waitFor("the mark says what is wrong", async () => {
      await page.mouse.move(0, 0);
      await page.hover(".cm-lintRange-error");
      return await found.waitFor({ timeout: 1_000 }).then(
        () => true,
        () => false,
      );
    });
    // What is said at the mark is what is said beside the text.
    const said = await page.locator(".findings li p").first().textContent();
    expect(said).toContain((await found.textContent()) ?? "-");
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
