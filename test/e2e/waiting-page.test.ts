import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RoomEdge, type Visitor } from "../support/room-edge.js";
import { axeFindings, axePath, startBrowser, wide } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
/** Its room is for one visitor at a time. */
let edge: RoomEdge;
/** Who is in the room as a test begins. */
let inside: Visitor;
let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser(stage);
  const room = `
    capacity: {activeUsers: 1}
    session: {length: 1m}
    refresh: 1s
    missedRefreshes: 100
    page:
      texts:
        de: {waitingTitle: "Sie sind <b>dran</b> & bald hier"}
  `;
  edge = await RoomEdge.start(stage, { rooms: { sale: { room } } });
});

beforeEach(async () => {
  inside = edge.visitor(stage);
  await waitFor("a session is spare", async () => (await inside.go()) === "in", { everyMs: 200 });
});

afterEach(async () => {
  await inside.leave();
  for (const context of browser.contexts()) {
    await context.request.post(`http://127.0.0.1:${edge.envoy.port}/.waiting-room/sale/leave`);
    await context.close();
  }
});

describe("the page of a waiting room in a browser", () => {
  it("follows the place without a reload, has one place in two tabs, and lets in", async () => {
    const before = edge.visitor(stage);
    expect(await before.go()).toBe("waiting");
    const context = await browser.newContext({ viewport: wide });
    const tab = await context.newPage();
    const troubles: string[] = [];
    tab.on("console", (message) => troubles.push(message.text()));
    tab.on("pageerror", (error) => troubles.push(error.message));
    const loads: string[] = [];
    tab.on("framenavigated", (frame) => loads.push(frame.url()));
    const url = `http://127.0.0.1:${edge.envoy.port}/shop?item=7`;
    await tab.goto(url);
    await seesPlace(tab, "2");
    expect(await judged(tab)).toEqual([]);
    const second = await context.newPage();
    await second.goto(url);
    await seesPlace(second, "2");
    await waitFor("the title says how many are ahead", async () => {
      return (await second.title()) === "(1) You are in line";
    });
    await before.leave();
    await seesPlace(tab, "1");
    expect(loads).toEqual([url]);
    await inside.leave();
    await tab.waitForSelector("text=answer 200");
    await second.waitForSelector("text=answer 200");
    expect(tab.url()).toBe(url);
    expect(troubles).toEqual([]);
  });

  it("says that a form was not sent, waits, and lets the visitor send it again", async () => {
    const tab = await browser.newPage();
    const url = `http://127.0.0.1:${edge.envoy.port}/`;
    await tab.route(`${url}form`, (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<form method="post" action="${url}buy"><button>Buy</button></form>`,
      }),
    );
    await tab.goto(`${url}form`);
    await tab.click("text=Buy");
    await tab.waitForSelector("text=What you sent was not delivered.");
    await seesPlace(tab, "1");
    const arrivals = edge.upstream().arrivalsMs.length;
    await inside.leave();
    await tab.waitForSelector('h1:text-is("It is your turn")');
    expect(edge.upstream().arrivalsMs.length).toBe(arrivals);
    await tab.goBack();
    await tab.click("text=Buy");
    await tab.waitForSelector("text=answer 200");
  });

  it("works without scripts, narrow and dark, in the visitor's language", async () => {
    const context = await browser.newContext({
      javaScriptEnabled: false,
      viewport: { width: 320, height: 640 },
      colorScheme: "dark",
      locale: "de-AT",
    });
    const tab = await context.newPage();
    const url = `http://127.0.0.1:${edge.envoy.port}/`;
    await tab.goto(url);
    expect(await tab.textContent("h1")).toBe("Sie sind <b>dran</b> & bald hier");
    await seesPlace(tab, "1");
    await tab.click("text=Leave the line");
    expect(await tab.textContent("h1")).toBe("You have left the line");
    await tab.goto(url);
    await inside.leave();
    await tab.waitForSelector("text=answer 200");
  });
});

/** Waits until the page shows a place. */
async function seesPlace(page: Page, place: string): Promise<void> {
  await waitFor(`the page shows place ${place}`, async () => {
    return (await page.textContent('[data-field="position"]')) === place;
  });
}

/** What axe finds serious. */
async function judged(page: Page): Promise<readonly string[]> {
  // Not as a script of the page, which its security policy would refuse.
  await page.evaluate(readFileSync(axePath, "utf8"));
  return axeFindings(page);
}
