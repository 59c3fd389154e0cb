import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import type { ChildProgram } from "../support/child-program.js";
import { ConsolePage, phone } from "../support/console-page.js";
import { freePort } from "../support/free-port.js";
import { requireProgram } from "../support/programs.js";
import { startBrowser } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const main = process.env["E2E_MAIN"] ?? resolve("dist/cli/main.js");
const stage = useStage("file");

/** How long the demo may take to show something, and to end, in milliseconds. */
const shownMsMax = 60_000;
const endMsMax = 15_000;

/** Ten times what a person waits at most. */
const letInMsMax = 600_000;

interface StartedDemo {
  readonly program: ChildProgram;
  readonly origin: string;
}

async function startDemo(...flags: readonly string[]): Promise<StartedDemo> {
  const [envoyPort, httpPort, grpcPort] = [await freePort(), await freePort(), await freePort()];
  const program = stage.spawn({
    name: "demo",
    file: process.execPath,
    args: [main, "demo", "--waiting-room", "--no-install", ...flags],
    env: {
      ENVOY_PORT: String(envoyPort),
      PORT: String(httpPort),
      GRPC_PORT: String(grpcPort),
      ENVOY_BIN: await requireProgram("envoy"),
    },
  });
  // Killed at once, it could not remove its folder.
  stage.atEnd(() => end(program));
  await waitFor("the demo says where to go", () => program.output.includes("Open it"), {
    withinMs: shownMsMax,
  });
  return { program, origin: `http://127.0.0.1:${envoyPort}` };
}

/** Asks it to end, and answers how it did. */
function end(program: ChildProgram): Promise<unknown> {
  program.signal("SIGINT");
  return within("the demo ends", endMsMax, program.exited);
}

/** The place that a page shows. */
async function placeOn(page: Page): Promise<number> {
  return Number(await page.locator("[data-field=position]").textContent());
}

describe("headgate demo --waiting-room", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser(stage);
  });

  it("lets a person wait, see the place fall, and in", async () => {
    const { program, origin } = await startDemo();
    expect(program.output).toContain(`${origin}/`);
    await waitFor("others wait", () => /4\d wait/.test(program.output), { withinMs: shownMsMax });
    const shown = await ConsolePage.open(browser, origin);
    const { page, context } = shown;
    await page.goto(`${origin}/`);
    await shown.see("You are in line");
    const first = await placeOn(page);
    expect(first).toBeGreaterThan(10);
    expect(await shown.judge()).toEqual([]);
    await shown.picture("demo-room-waiting");
    const second = await context.newPage();
    await second.goto(`${origin}/`);
    expect(await placeOn(second)).toBeLessThanOrEqual(first);
    await second.close();
    await waitFor("the place falls", async () => (await placeOn(page)) < first - 3, {
      withinMs: shownMsMax,
    });
    await page.setViewportSize(phone);
    expect(await shown.overflow()).toBe(0);
    await shown.picture("demo-room-waiting-narrow");
    await shown.see("Welcome to the shop", letInMsMax);
    await shown.picture("demo-room-let-in");
    await page.reload();
    await shown.see("Welcome to the shop");
    await page.click("text=Leave");
    await shown.see("left");
    expect(shown.troubles).toEqual([]);
    expect(program.output).toMatch(/ \d+ wait {3}\d+ shop {3}\d+ have come in$/m);
    expect(await end(program)).toEqual({ code: 0 });
  });

  it("says what is missing where there is no Envoy", async () => {
    const program = stage.spawn({
      name: "demo",
      file: process.execPath,
      args: [main, "demo", "--waiting-room", "--no-install"],
      env: { ENVOY_BIN: "/nowhere/envoy", PATH: "", ENVOY_PORT: "0", PORT: "0", GRPC_PORT: "0" },
    });
    expect(await within("the demo ends", shownMsMax, program.exited)).toEqual({ code: 1 });
    expect(program.output).toContain("this example needs an Envoy");
  });
});
