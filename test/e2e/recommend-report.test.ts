import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { generatedCsv } from "../support/generated-log.js";
import { axeFindings, axePath, narrow, startBrowser, wide } from "../support/site.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limits:
            - {name: pace, unit: minute, requests_per_unit: 600}
            - {name: daily, unit: day, requests_per_unit: 1000}
        - key: plan
          value: free
          rate_limit: {unit: minute, requests_per_unit: 9}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;

describe("the report of headgate recommend", () => {
  it.each(["light", "dark"] as const)("is readable in a browser, %s", async (colorScheme) => {
    const folder = stage.folder;
    const wild = { bursts: 3, size: 200 };
    const log = { seed: 1, days: 4, callers: 60, perDay: 1_500, zipf: 0.5, wild };
    await writeFile(join(folder, "policy.yaml"), policy);
    await writeFile(join(folder, "access.csv"), generatedCsv(log));
    const html = join(folder, "report.html");
    const { code, err } = await captureCli([
      "recommend",
      ...["--policy", join(folder, "policy.yaml"), "--html", html, join(folder, "access.csv")],
    ]);
    expect([code, err]).toEqual([0, ""]);

    const browser = await startBrowser(stage);
    // Its security policy lets no script run; ours looks at it.
    const context = await browser.newContext({ colorScheme, viewport: wide, bypassCSP: true });
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on("console", (message) => troubles.push(message.text()));
    page.on("pageerror", (error) => troubles.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith("file:")) troubles.push(`asks ${request.url()}`);
    });
    await page.goto(`file://${html}`);
    await page.addScriptTag({ path: axePath });
    expect(await axeFindings(page)).toEqual([]);
    // Requests over time, by hour and by day, and a curve for each limit; a table beside each.
    expect(await page.locator("figure svg").count()).toBe(5);
    await page.locator("figure summary").first().click();
    expect(await page.locator("figure details[open] tbody tr").count()).toBeGreaterThan(20);
    for (const size of [wide, narrow]) {
      await page.setViewportSize(size);
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      const shapes = await page.evaluate(
        `[...document.querySelectorAll("path, text")].filter((one) => {
           const own = one.getBoundingClientRect();
           const all = one.ownerSVGElement.getBoundingClientRect();
           const isCut = own.left < all.left - 1 || own.right > all.right + 1;
           return isCut || own.top < all.top - 1 || own.bottom > all.bottom + 1;
         }).map((one) => one.outerHTML)`,
      );
      expect(shapes).toEqual([]);
    }
    expect(troubles).toEqual([]);
  });
});
