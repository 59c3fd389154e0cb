import type { Browser } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { initialSettings } from "../../src/demo/three-layers/layers-settings.js";
import { ConsolePage, phone } from "../support/console-page.js";
import { LayersDemo } from "../support/layers-demo.js";
import { startBrowser } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

describe("headgate demo --three-layers", () => {
  let browser: Browser;
  let demo: LayersDemo;
  beforeAll(async () => {
    browser = await startBrowser(stage);
    demo = await LayersDemo.start(stage);
  });

  it.each(["light", "dark"] as const)("shows what becomes of requests, in %s", async (theme) => {
    const shown = await ConsolePage.open(browser, demo.origin, theme);
    await shown.page.goto(`${demo.origin}/`);
    await shown.see(/Goodput\s*\d+\.\d %/);
    await shown.see(/In the last second: \d+ requests/);
    expect(await shown.judge()).toEqual([]);
    await shown.picture(`demo-layers-${theme}`);
    await shown.page.setViewportSize(phone);
    expect(await shown.overflow()).toBe(0);
    await shown.picture(`demo-layers-narrow-${theme}`);
    expect(shown.troubles).toEqual([]);
    await shown.context.close();
  });

  it("is changed by the keyboard alone", async () => {
    const shown = await ConsolePage.open(browser, demo.origin);
    const { page } = shown;
    await page.goto(`${demo.origin}/`);
    await shown.see(/Load 0\.8 times/);
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowRight");
    await shown.see(/Load 1\.0 times/);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    for (const _layer of ["client", "proxy"]) {
      await page.keyboard.press("Tab");
      await page.keyboard.press("Space");
    }
    const wanted = {
      layers: { client: false, proxy: false, server: true },
      loadRatio: 1,
      workersRatio: 0.5,
    };
    await waitFor("the settings have come", async () => {
      return JSON.stringify(await demo.settings()) === JSON.stringify(wanted);
    });
    // Who opens the page anew sees what is so.
    await page.reload();
    await shown.see(/Load 1\.0 times/);
    expect(await page.isChecked("#client")).toBe(false);
    expect(await page.isChecked("#server")).toBe(true);
    expect(await page.getAttribute("#half", "aria-pressed")).toBe("true");
    expect(shown.troubles).toEqual([]);
    await shown.context.close();
  });

  it("takes no settings that are out of bounds, and none from other sites", async () => {
    await demo.change(initialSettings);
    const good = JSON.stringify({ ...initialSettings, loadRatio: 2 });
    expect((await demo.post(good, { origin: "http://elsewhere.example" })).status).toBe(403);
    expect((await demo.post(good, { host: "elsewhere.example" })).status).toBe(403);
    for (const bad of [
      "",
      "{",
      JSON.stringify({ ...initialSettings, loadRatio: 13 }),
      JSON.stringify({ ...initialSettings, loadRatio: "1" }),
      JSON.stringify({ ...initialSettings, workersRatio: -1 }),
      JSON.stringify({ ...initialSettings, layers: { client: true } }),
      " ".repeat(2_000) + good,
    ]) {
      expect((await demo.post(bad)).status, bad.slice(0, 80)).toBe(400);
    }
    expect(await demo.settings()).toEqual(initialSettings);
  });

  it("prints figures, and leaves nothing running", async () => {
    await waitFor("a line of figures", () => /^ +\d+ s {3}goodput /m.test(demo.program.output));
    expect(await demo.end()).toEqual({ code: 0 });
  });
});
