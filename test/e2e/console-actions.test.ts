import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { ConsolePage } from "../support/console-page.js";
import { type ConsoleRig, consolePolicy, startConsoleRig, tokens } from "../support/console-rig.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
let rig: ConsoleRig;
let operator: ConsolePage;

beforeAll(async () => {
  rig = await startConsoleRig(stage);
  operator = await rig.open("operator");
});

/** What makes another policy the active one, or runs it beside that. */
const releases = ["Start the shadow", "Apply", "Enforce", "Roll back"];

async function sendMany(user: string, count: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) statuses.push(await rig.send(user));
  return statuses;
}

/** Opens an action's form, fills in why, does it, and reads what came of it. */
async function act(button: string, verb: string, reason: string): Promise<void> {
  const { page } = operator;
  await page.click(`main >> text="${button}"`);
  if (releases.includes(verb)) await page.waitForSelector("dialog .diff .added");
  await page.fill("dialog label:has-text('Reason') input", reason);
  await page.click(`dialog button:text-is("${verb}")`);
}

describe("an operator in the console", () => {
  it("gives a user more than the policy does, and takes it back", async () => {
    expect(await sendMany("ann", 4)).toEqual([200, 200, 200, 429]);
    await operator.show("#/key/edge/user=ann");
    await operator.see("fits in");
    await act("Override …", "Set override", "launch week");
    await operator.see("on all replicas within a second");
    await waitFor("ann gets more", async () => (await rig.send("ann")) === 200, { everyMs: 100 });
    expect(await sendMany("ann", 3)).toEqual([200, 200, 429]);
    await operator.page.click("dialog >> text=Done");
    await operator.see(/6 per 1h/);
    await act("Remove override …", "Remove", "it is over");
    await operator.see("Removed");
    await operator.show("#/audit");
    await operator.see(/olga.*SetOverride.*launch week/s);
    await operator.see(/olga.*DeleteOverride.*it is over/s);
    expect(operator.troubles).toEqual([]);
  });

  it("says before what will change, and how the command line does it", async () => {
    const { page } = operator;
    await operator.show("#/key/edge/user=ann");
    await page.click("text=Override …");
    await page.fill("dialog label.field:has-text('Times') input", "4");
    await page.fill("dialog label:has-text('Duration') input", "2h");
    await page.fill("dialog label:has-text('Reason') input", "it's a test");
    await operator.see(/3 per 1h.*times 4 of what the policy says, until/s);
    await page.click("dialog >> text=Copy as CLI command");
    await operator.see("Copied");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      "headgate keys override edge user=ann --times 4x --for 2h --reason 'it'\\''s a test'",
    );
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    expect(operator.troubles).toEqual([]);
  });

  it("empties a key and freezes another", async () => {
    await sendMany("cid", 4);
    await operator.show("#/key/edge/user=cid");
    await operator.see("3 of 3");
    await act("Reset …", "Reset", "a loop of ours");
    await operator.see("Emptied 1 bucket.");
    await waitFor("cid goes on", async () => (await rig.send("cid")) === 200, { everyMs: 100 });
    await operator.show("#/key/edge/user=mallory");
    await act("Freeze …", "Freeze", "scraping");
    await operator.see("on all replicas within a second");
    await waitFor("mallory is frozen", async () => (await rig.send("mallory")) === 429);
    await operator.page.click("dialog >> text=Done");
    await operator.see("frozen by an operator");
    await operator.show("#/overrides");
    await operator.see("scraping");
    expect(operator.troubles).toEqual([]);
  });

  it("changes when a gate opens and closes", async () => {
    const { page } = operator;
    await operator.show("#/service/orders");
    await page.click("text=Show thresholds");
    await operator.see("Opens below 0.6");
    await page.click("text=Change thresholds …");
    await page.fill("dialog label:has-text('Open below') input", "0.5");
    await page.fill("dialog label:has-text('Reason') input", "a calmer gate");
    await page.click('dialog button:text-is("Change thresholds")');
    await operator.see("It applies on all replicas");
    await page.click("dialog >> text=Done");
    await operator.see("set by an operator");
    expect(operator.troubles).toEqual([]);
  });
});

describe("a policy in the console", () => {
  /** The text of the editor becomes this. */
  async function write(text: string): Promise<void> {
    const { page } = operator;
    await operator.show("#/policy");
    await page.click(".cm-content");
    await page.keyboard.press("Control+a");
    await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
    await page.keyboard.press("Control+v");
  }

  /** Somebody whom nobody has counted yet. */
  async function newUser(): Promise<string> {
    return `user${await operator.page.evaluate("performance.now()")}`;
  }

  it("is marked where it is wrong, and released only when it is right", async () => {
    const { page } = operator;
    await write(consolePolicy(2).replace("unit: hour", "unit: fortnight"));
    await operator.see(/1 problem/);
    await page.waitForSelector(".cm-lintRange-error");
    await page.waitForSelector('button:text-is("Apply …"):disabled');
    await write(consolePolicy(2));
    await operator.see("3 per hour becomes 2 per hour");
    expect(operator.troubles).toEqual([]);
  });

  it("is applied only after its difference was shown, and rolled back as well", async () => {
    const { page } = operator;
    /** Calls that make another policy active, and how many changed lines were shown then. */
    const calls: (readonly [method: string, changedLines: number])[] = [];
    await page.route(/PolicyService\/(?:Apply|Enforce|RollBack)Policy$/, async (route) => {
      const lines = page.locator("dialog[open] .diff .added, dialog[open] .diff .removed");
      const [method = ""] = /\w+$/.exec(route.request().url()) ?? [];
      calls.push([method, await lines.filter({ visible: true }).count()]);
      await route.continue();
    });
    const versionOf = async () => await page.locator(".policy-state .mono").first().textContent();
    const before = await versionOf();
    // Who reads the difference and does not agree changes nothing.
    await page.click("main >> text=Apply …");
    await page.waitForSelector("dialog .diff .added:has-text('requests_per_unit: 2')");
    await page.waitForSelector("dialog .diff .removed:has-text('requests_per_unit: 3')");
    await page.waitForSelector('dialog button:text-is("Apply"):disabled');
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    expect([await versionOf(), calls]).toEqual([before, []]);

    await act("Apply …", "Apply", "half of it");
    await operator.see("Active: policy");
    await page.click("dialog >> text=Done");
    await waitFor("two pass", async () => (await sendMany(await newUser(), 3))[2] === 429);
    await operator.show("#/policy?tab=history");
    await page.click("main table >> tbody tr >> nth=1 >> button");
    await operator.see("would change");
    await act("Roll back …", "Roll back", "it was too little");
    await operator.see("Active: policy");
    await waitFor("three pass", async () => (await sendMany(await newUser(), 3))[2] === 200);
    expect(calls).toEqual([
      ["ApplyPolicy", 2],
      ["RollBackPolicy", 2],
    ]);
    await page.unrouteAll();
    await operator.show("#/audit");
    await operator.see(/olga.*RollBackPolicy.*it was too little.*ApplyPolicy.*half of it/s);
    expect(operator.troubles).toEqual([]);
  });

  it("is run as a shadow, enforced and rolled back", async () => {
    const { page } = operator;
    await write(consolePolicy(2));
    await operator.see("3 per hour becomes 2 per hour");
    await act("Shadow …", "Start the shadow", "half of it");
    await operator.see("Shadow policy:");
    await page.click("dialog >> text=Done");
    await operator.show("#/policy?tab=shadow");
    await operator.see("Compared");
    // Each replica begins with it in a time of its own.
    await waitFor(
      "the report tells of calls that would be denied",
      async () => {
        const user = await newUser();
        await sendMany(user, 3);
        return /edge\/user\s*[1-9]/.test((await page.textContent("main")) ?? "");
      },
      { withinMs: 30_000, everyMs: 500 },
    );
    const chart = "[role=img][aria-label^='Decided differently, per second: newly denied']";
    await page.waitForSelector(`${chart}:not([aria-label*='newly denied 0,'])`);
    await act("Enforce …", "Enforce", "nobody was hurt");
    await operator.see("Active: policy");
    // What came of it stays to be read when the page behind it knows the shadow no more.
    await operator.page.locator(".policy-state .badge", { hasText: "shadow" }).waitFor({
      state: "detached",
    });
    await operator.see("Active: policy");
    await page.click("dialog >> text=Done");
    await waitFor("two pass", async () => {
      const user = await newUser();
      return (await sendMany(user, 3)).join() === "200,200,429";
    });
    await operator.show("#/policy?tab=history");
    await page.click("main table >> tbody tr >> nth=1 >> button");
    await operator.see("would change");
    await act("Roll back …", "Roll back", "somebody was");
    await operator.see("Active: policy");
    await waitFor("three pass again", async () => {
      const user = await newUser();
      return (await sendMany(user, 4)).join() === "200,200,200,429";
    });
    expect(operator.troubles).toEqual([]);
  });
});

describe("a reader at the keyboard", () => {
  it("goes by keys, and leaves each box with Escape", async () => {
    const { page } = operator;
    await operator.show("#/");
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.waitForSelector("h1:text-is('Services')");
    await page.keyboard.press("/");
    await page.waitForSelector("dialog input:focus");
    await page.keyboard.type("edge user=ann");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await operator.see("Why?");
    await page.keyboard.press("/");
    await page.waitForSelector("dialog input:focus");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[aria-label=Keys]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    expect(decodeURIComponent(page.url())).toMatch(/#\/key\/edge\/user=ann$/);
  });

  it.each(["nothing", "constructor", "__proto__"])(
    "is told that no view is called %s",
    async (name) => {
      await operator.show(`#/${name}`);
      await operator.see("There is no such view");
      await operator.show("#/key/edge/user=ann");
      expect(operator.troubles).toEqual([]);
    },
  );

  it("stays in a form with Tab, and comes back to its button", async () => {
    const { page } = operator;
    // It can be used once the key's limits are known.
    await page.focus("button:enabled:has-text('Override …')");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog.action");
    const stops = new Set<unknown>();
    for (let i = 0; i < 25; i += 1) {
      await page.keyboard.press("Tab");
      stops.add(
        await page.evaluate(`(() => {
          const { activeElement: at, body } = document;
          return at === body || at.closest("dialog") ? at.textContent || at.tagName : "outside";
        })()`),
      );
    }
    expect([...stops]).toContain("Cancel");
    expect([...stops]).not.toContain("outside");
    await page.keyboard.press("g");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    const focused = await page.evaluate("document.activeElement.textContent");
    expect(focused).toBe("Override …");
    expect(operator.troubles).toEqual([]);
  });

  it("keeps a plot's numbers as CSV, those of its table", async () => {
    const { page } = operator;
    await sendMany("gil", 5);
    await operator.show("#/");
    const plot = page.locator("section[aria-label='Decisions per second']");
    await plot.locator("[role=img]").waitFor();
    await plot.locator("text=Table").click();
    const heads = await plot.locator("th").allTextContents();
    // The newest second with so many admitted, and another number over their limits.
    const busy = await waitFor("the table has what was sent", async () => {
      for (const row of await plot.locator("tbody tr").all()) {
        const cells = await row.locator("td").allTextContents();
        if (cells[1] !== cells[2] && !cells.includes("?")) return cells;
      }
      return undefined;
    });
    const download = page.waitForEvent("download");
    await plot.locator("text=CSV").click();
    const file = await download;
    expect(file.suggestedFilename()).toBe("headgate-decisions-per-second.csv");
    const [head = "", ...rows] = (await readFile(await file.path(), "utf8")).trim().split("\r\n");
    expect(head).toBe("time,admitted,over limit,near limit,shadow");
    expect(heads).toEqual(["Time (UTC)", ...head.split(",").slice(1)]);
    const cells = rows.map((row) => row.split(","));
    expect(cells).toContainEqual(busy);
    // Each second once.
    expect(new Set(cells.map(([time]) => time)).size).toBe(rows.length);
    for (const [time] of cells) expect(time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/);
  });

  it("holds the live tail under the pointer", async () => {
    const { page } = operator;
    // Where no row comes.
    await page.mouse.move(0, 0);
    await operator.show("#/tail?domain=edge&sample=1");
    await operator.see("live");
    const rows = page.locator("main tbody tr");
    await waitFor("decisions are shown", async () => {
      await rig.send("hal");
      return (await rows.count()) >= 4;
    });
    await rows.first().hover();
    await operator.see("paused");
    const before = await rows.allTextContents();
    await waitFor("what comes is counted", async () => {
      await rig.send("ida");
      return /[1-9] more since/.test((await page.textContent(".tail-state")) ?? "");
    });
    expect(await rows.allTextContents()).toEqual(before);
    await page.click("text=Copy as CLI command");
    await operator.see("ida");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      "headgate tail edge --sample 1",
    );
    expect(operator.troubles).toEqual([]);
  });
});

describe("a link that somebody has pasted", () => {
  /** The cells of each row, by column. */
  async function rowsOf(hash: string, isWanted: (rows: string[][]) => boolean) {
    await operator.show(hash);
    return await waitFor(`${hash} shows what it says`, async () => {
      const rows = await operator.page.locator("main tbody tr").all();
      const cells = await Promise.all(rows.map((row) => row.locator("td").allTextContents()));
      return isWanted(cells) ? cells : undefined;
    });
  }

  it("opens the limits sorted and filtered", async () => {
    const sorted = await rowsOf("#/limits?sort=-hits&q=edge", (rows) => rows.length === 3);
    expect(sorted.map(([rule]) => rule)[0]).toBe("edge/user");
    await operator.page.waitForSelector("th[aria-sort=descending]:has-text('Hits')");
    const names = await rowsOf("#/limits?sort=rule", (rows) => rows.length === 4);
    const shown = names.map(([rule = ""]) => rule);
    expect(shown).toEqual(shown.toSorted());
  });

  it("opens the audit log by author and action, and says where nothing matches", async () => {
    const rows = await rowsOf("#/audit?by=olga&action=ResetKey&since=2h", (all) => all.length > 0);
    for (const [, by, action] of rows) expect([by, action]).toEqual(["olga", "ResetKey"]);
    await operator.show("#/audit?by=nobody");
    await operator.see("No changes, or none that match the filter.");
    await operator.page.click("text=Copy as CLI command");
    await operator.see("Copied");
    expect(await operator.page.evaluate("navigator.clipboard.readText()")).toBe(
      "headgate audit --by nobody",
    );
  });

  it("opens the live tail with those who are denied, of one key", async () => {
    await operator.page.mouse.move(0, 0);
    await operator.show("#/tail?domain=edge&rule=user&denied=1&key=user%3Djon&sample=1");
    await operator.see("live");
    const rows = operator.page.locator("main tbody tr");
    // Another replica follows a moment later.
    await waitFor("denied ones are shown", async () => {
      await sendMany("kim", 1);
      await sendMany("jon", 1);
      return (await rows.count()) >= 2;
    });
    for (const text of await rows.allTextContents()) expect(text).toMatch(/denied.*user=jon/);
    expect(operator.troubles).toEqual([]);
  });
});

describe("who is no operator", () => {
  it("sees everything as a reader, and no button that it may not press", async () => {
    const reader = await rig.open("reader");
    for (const hash of ["#/key/edge/user=ann", "#/overrides", "#/service/orders", "#/policy"]) {
      await reader.show(hash);
      await reader.see("rita reader");
      const forbidden = /^(?:Override|Reset|Freeze|Remove|Change|Shadow|Apply|Enforce).*…$/;
      expect(await reader.page.locator("button").filter({ hasText: forbidden }).count()).toBe(0);
    }
    expect(reader.troubles).toEqual([]);
    await reader.context.close();
  });

  it("operates the domains that are its own, and sees no others", async () => {
    const other = await rig.open("other");
    await other.show("#/limits");
    await other.see("other/");
    await other.see("1 rule of policy");
    await other.show("#/key/other/account=7");
    await other.page.waitForSelector("text=Override …");
    await other.context.close();
  });

  it("is asked again when the session has ended, and loses no form", async () => {
    const { page, context } = operator;
    await operator.show("#/key/edge/user=ann");
    await page.click("text=Override …");
    await page.fill("dialog label:has-text('Reason') input", "kept");
    operator.expectLoss();
    await context.clearCookies();
    await operator.see("Your session has ended");
    await page.fill("input[type=password]", tokens.operator);
    await page.click('button:text-is("Sign in")');
    await page.waitForSelector("input[type=password]", { state: "detached" });
    expect(await page.inputValue("dialog label:has-text('Reason') input")).toBe("kept");
    await page.click('dialog button:text-is("Set override")');
    await operator.see("on all replicas within a second");
  });
});
