import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { z } from "zod";
import { axeFindings, axePath, isPictured, type Theme, wide } from "./site.js";
import { waitFor } from "./wait.js";

const screenshots = fileURLToPath(new URL("../../test-output/console/", import.meta.url));

/** Runs in a page: what follows the size of the window is drawn in the first of two frames. */
const paintedScript = `new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(resolve)))`;

/** A phone. */
export const phone = { width: 390, height: 844 };

/** A page of the console in a browser of its own profile, and what went wrong in it. */
export class ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly troubles: string[] = [];
  readonly #origin: string;
  #isLossExpected = false;

  private constructor(page: Page, origin: string) {
    this.page = page;
    this.context = page.context();
    this.#origin = origin;
    const note = (what: string): void => {
      // A server that is gone is what some tests are about; the browser tells of each attempt.
      const isLoss = /net::ERR_|Failed to load resource/.test(what);
      if (!this.#isLossExpected || !isLoss) this.troubles.push(`${page.url()}: ${what}`);
    };
    // Also what breaks the security policy comes as an error of the console.
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) note(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => note(`exception: ${error.message}`));
    page.on("dialog", (dialog) => note(`dialog: ${dialog.message()}`));
    page.on("request", (request) => {
      const url = request.url();
      if (!/^(?:data|blob):/.test(url) && !url.startsWith(origin)) note(`asks ${url}`);
    });
  }

  /** Opens a page that shows nothing yet. */
  static async open(browser: Browser, origin: string, theme: Theme = "light") {
    const context = await browser.newContext({
      colorScheme: theme,
      reducedMotion: "reduce",
      viewport: wide,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    context.setDefaultTimeout(20_000);
    return new ConsolePage(await context.newPage(), origin);
  }

  /** From now on requests may fail. */
  expectLoss(): void {
    this.#isLossExpected = true;
  }

  /** Goes to the form, and signs in. */
  async signIn(token: string): Promise<void> {
    // Who is not signed in is told so, and the browser writes that down.
    this.#isLossExpected = true;
    await this.page.goto(`${this.#origin}/`);
    await this.page.fill("input[type=password]", token);
    await this.page.click("text=Sign in");
    await this.page.waitForSelector("nav[aria-label=Views]");
    this.#isLossExpected = false;
  }

  /** Goes to a view by its URL, and waits for its title. */
  async show(hash: string): Promise<void> {
    await this.page.goto(`${this.#origin}/${hash}`);
    await this.page.waitForSelector("main h1");
  }

  /** Waits until the view holds a text. */
  async see(text: string | RegExp, withinMs = 20_000): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      const shown = await this.page.locator("body").textContent();
      return typeof text === "string" ? shown?.includes(text) === true : text.test(shown ?? "");
    };
    try {
      await waitFor(`the page says ${text}`, isThere, { withinMs, everyMs: 100 });
    } catch (error) {
      await this.#keep("not-seen");
      throw error;
    }
  }

  /** What axe finds serious. */
  async judge(): Promise<readonly string[]> {
    // Not as a script of the page, which its security policy would refuse.
    const isThere = await this.page.evaluate("'axe' in window");
    if (isThere !== true) await this.page.evaluate(readFileSync(axePath, "utf8"));
    const found = await axeFindings(this.page);
    return found.map((one) => `${this.page.url()}: ${one}`);
  }

  /** How far the page can be scrolled to the side, in pixels. */
  async overflow(): Promise<number> {
    const root = "document.documentElement";
    return z.number().parse(await this.page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`));
  }

  /** Waits until the page is drawn as it is now; keeps a picture with `HEADGATE_PICTURES=1`. */
  async picture(name: string): Promise<void> {
    if (isPictured) await this.#keep(name);
    else await this.page.evaluate(paintedScript);
  }

  async #keep(name: string): Promise<void> {
    mkdirSync(screenshots, { recursive: true });
    await this.page.screenshot({ path: `${screenshots}${name}.png`, fullPage: true });
  }
}
