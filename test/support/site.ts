import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { z } from "zod";
import { listenOnLoopback } from "./loopback-server.js";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { within } from "./wait.js";

declare global {
  // What the library's types name and only a browser's declare.
  interface Node {
    readonly nodeName: string;
  }
  interface HTMLElement extends Node {
    readonly lang: string;
  }
  interface SVGElement extends Node {
    readonly tabIndex: number;
  }
  type HTMLElementTagNameMap = Readonly<Record<string, HTMLElement>>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "docs/.vitepress/dist");
/** Where the script of axe lies. */
export const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
/** Where the site has it: what a browser asks for again is translated already. */
const axeUrl = "/axe.min.js";

/** Whether pages are kept as pictures, for people who look. */
export const isPictured = process.env["HEADGATE_PICTURES"] === "1";

/** The generator is installed first where it is not there. */
const buildMsMax = 280_000;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/** A site that is served on this machine: the documentation, as it was built just now. */
export class Site {
  readonly origin: string;
  /** Paths of all pages, such as `/reference/metrics.html`. */
  readonly paths: readonly string[];

  private constructor(port: number) {
    this.origin = `http://127.0.0.1:${port}`;
    this.paths = readdirSync(dist, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".html") && path !== "404.html")
      .map((path) => `/${path}`)
      .sort();
  }

  /** Builds and serves it until the stage ends. */
  static async build(stage: Stage): Promise<Site> {
    // With all that npm may be told: proxies, authorities, a registry.
    const env = z.record(z.string(), z.string()).parse({ ...process.env });
    const args = ["tools/docs.mjs"];
    const program = stage.spawn({ name: "docs", file: process.execPath, args, cwd: root, env });
    const exit = await within("the site is built", buildMsMax, program.exited);
    if (exit.code !== 0) throw new Error(`the site was not built:\n${program.output}`);
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://site").pathname;
      const file = path === axeUrl ? axePath : fileOf(path);
      response.writeHead(file === undefined ? 404 : 200, {
        "content-type": types[extname(file ?? "")] ?? "text/plain; charset=utf-8",
        "cache-control": "max-age=3600",
      });
      response.end(file === undefined ? "" : readFileSync(file));
    });
    return new Site(await listenOnLoopback(stage, server));
  }

  /** Whether there is something to be had at a path. */
  holds(path: string): boolean {
    return fileOf(path) !== undefined;
  }
}

function fileOf(path: string): string | undefined {
  const file = join(dist, path.endsWith("/") ? `${path}index.html` : path);
  return file.startsWith(dist) && existsSync(file) && statSync(file).isFile() ? file : undefined;
}

/** A real browser; it ends with the stage. */
export async function startBrowser(stage: Stage): Promise<Browser> {
  const executablePath = await requireProgram("chromium");
  // A page that asks anybody else is noted, and gets nothing: to stand between a browser and its
  // servers would turn its cache off.
  const nobodyElse = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
  const args = ["--disable-gpu", nobodyElse];
  const browser = await chromium.launch({ executablePath, args });
  stage.atEnd(() => browser.close());
  return browser;
}

/** The colors of a page. */
export type Theme = "light" | "dark";

/** What went wrong while pages were shown. */
export interface Trouble {
  readonly page: string;
  readonly what: string;
}

/** Shows pages of a site, one after the other, and notes what the browser complains of. */
export class SiteReader {
  readonly troubles: Trouble[] = [];
  readonly page: Page;
  readonly #site: Site;
  #path = "";

  private constructor(page: Page, site: Site) {
    this.page = page;
    this.#site = site;
    const note = (what: string): void => {
      this.troubles.push({ page: this.#path, what });
    };
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) note(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => note(`exception: ${error.message}`));
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(site.origin) && !url.startsWith("data:")) note(`asks ${url}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400) note(`${response.status()} for ${response.url()}`);
    });
  }

  /** A reader with a fresh profile, that asks nobody but the site. */
  static async open(browser: Browser, site: Site, theme: Theme): Promise<SiteReader> {
    const context: BrowserContext = await browser.newContext({
      colorScheme: theme,
      reducedMotion: "reduce",
      viewport: wide,
    });
    return new SiteReader(await context.newPage(), site);
  }

  /** Opens a page, and waits until its scripts have taken it over. */
  async show(path: string): Promise<void> {
    this.#path = path;
    await this.page.goto(`${this.#site.origin}${path}`);
    await this.page.waitForFunction("document.querySelector('#app')?.__vue_app__ !== undefined");
  }

  /**
   * Goes on to a page as by a link of the one that is open, which costs a quarter of opening it.
   * What the browser makes of it must have the elements that the page's own file has.
   */
  async goOn(path: string): Promise<void> {
    this.#path = path;
    const script = `(${goOnScript})(${JSON.stringify(path)})`;
    const difference = z.string().parse(await this.page.evaluate(script));
    if (difference !== "") this.troubles.push({ page: path, what: difference });
  }

  /** Sets the size of the window. */
  async resize(size: { readonly width: number; readonly height: number }): Promise<void> {
    await this.page.setViewportSize(size);
  }

  /** What the page holds. */
  async look(): Promise<PageFacts> {
    return pageFacts.parse(await this.page.evaluate(factsScript));
  }

  /** What breaks rules of accessibility in the whole page, serious or worse; as text. */
  async judge(): Promise<readonly string[]> {
    await this.page.addScriptTag({ url: `${this.#site.origin}${axeUrl}` });
    return (await axeFindings(this.page)).map((found) => `${this.#path}: ${found}`);
  }

  /**
   * The same of the page's text, in both themes. How well a text stands out follows from its
   * colors, size and weight. Looks that were judged on an earlier page are therefore left out: they
   * would take two thirds of the time.
   *
   * @param known the looks that were judged; those of this page are added
   */
  async judgeText(known: Set<string>): Promise<readonly string[]> {
    if (!(await this.page.evaluate("'axe' in window"))) {
      await this.page.addScriptTag({ url: `${this.#site.origin}${axeUrl}` });
    }
    const script = `${judgeScript}; judgeText(${JSON.stringify([...known])})`;
    const { looks, found } = textResult.parse(await this.page.evaluate(script));
    for (const look of looks) known.add(look);
    return this.#reported(found);
  }

  #reported(found: z.infer<typeof axeResult>): readonly string[] {
    return found.map((one) => `${this.#path}: ${findingText(one)}`);
  }
}

/** What axe, which the page has loaded, finds in all of it, serious or worse; as text. */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  const found = await page.evaluate(`${judgeScript}; judge("body", {})`);
  return axeResult.parse(found).map(findingText);
}

function findingText({ id, impact, nodes }: z.infer<typeof axeResult>[number]): string {
  const places = nodes.slice(0, 3).map(({ target }) => target.join(" "));
  return `${id} (${impact}), ${nodes.length} times: ${places.join("; ")}`;
}

/** The size of a desktop's window, and the narrowest phone's. */
export const wide = { width: 1280, height: 900 };
/** The narrowest phone. */
export const narrow = { width: 360, height: 740 };

const pageFacts = z.object({
  title: z.string(),
  headings: z.array(z.string()),
  ids: z.array(z.string()),
  links: z.array(z.string()),
  /** How far the page can be scrolled to the side, in pixels. */
  overflow: z.number(),
  textLength: z.number(),
});

/** What a page holds. */
export type PageFacts = z.infer<typeof pageFacts>;

/** Runs in a page: asks VitePress's router, and compares the text with that of the page's file. */
const goOnScript = `async (path) => {
  const elementsOf = (page) => [...page.querySelectorAll(".vp-doc *")].map((one) => one.tagName);
  const { provides } = document.querySelector("#app").__vue_app__._context;
  const router = Reflect.ownKeys(provides).map((key) => provides[key]).find((one) => one?.go);
  const file = await (await fetch(path)).text();
  await router.go(path);
  const wanted = elementsOf(new DOMParser().parseFromString(file, "text/html"));
  const shown = elementsOf(document);
  const at = wanted.findIndex((name, i) => name !== shown[i]);
  if (at === -1 && shown.length === wanted.length) return "";
  return "element " + at + " is " + shown[at] + " and not " + wanted[at];
}`;

const factsScript = `({
  title: document.title,
  headings: [...document.querySelectorAll("main h1")].map((one) => one.textContent ?? ""),
  ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
  links: [...document.querySelectorAll("a[href]")].map((one) => one.href),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  textLength: (document.querySelector("main")?.textContent ?? "").length,
})`;

const axeResult = z.array(
  z.object({
    id: z.string(),
    impact: z.string(),
    nodes: z.array(z.object({ target: z.array(z.unknown()) })),
  }),
);

const textResult = z.object({ looks: z.array(z.string()), found: axeResult });

/** Runs in the page: one frame, and styles that are there, so that axe need not look for others. */
const judgeScript = `
const quick = { iframes: false, preload: false, resultTypes: ["violations"] };
axe.configure({
  rules: axe._audit.rules
    .filter(({ impact }) => impact === "minor" || impact === "moderate")
    .map(({ id }) => ({ id, enabled: false })),
});
const judge = async (part, options) =>
  (await axe.run(part, { ...quick, ...options })).violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, impact, nodes }) => {
      return { id, impact, nodes: nodes.map(({ target }) => ({ target })) };
    });
const groundOf = (element, grounds) => {
  if (element === null) return "";
  const known = grounds.get(element);
  if (known !== undefined) return known;
  const { backgroundColor, opacity } = getComputedStyle(element);
  const own = opacity === "1" ? "" : opacity + " ";
  const isClear = backgroundColor === "rgba(0, 0, 0, 0)";
  const painted = isClear ? own : own + backgroundColor + " ";
  const isSolid = !backgroundColor.startsWith("rgba");
  const ground = painted + (isSolid ? "" : groundOf(element.parentElement, grounds));
  grounds.set(element, ground);
  return ground;
};
const markNew = (known) => {
  const before = known.size;
  const grounds = new Map();
  const lookOf = (element) => {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    return [color, fontSize, fontWeight, groundOf(element, grounds)].join(" ");
  };
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const look = texts.currentNode.data.trim() === "" ? undefined : lookOf(element);
    if (look === undefined || known.has(look)) continue;
    known.add(look);
    element.toggleAttribute("data-judged", true);
  }
  return known.size > before;
};
// Axe reads all elements there are, several times: those around the text, and the words of code
// whose looks are known, are most of them. Answers how to put back what is around the text.
const lighten = () => {
  const main = document.querySelector("main");
  const taken = [];
  for (const part of document.querySelectorAll("header, aside, footer, .VPNav, .VPSidebar")) {
    if (!part.isConnected || part.contains(main) || main.contains(part)) continue;
    const place = document.createComment("");
    part.replaceWith(place);
    taken.push([place, part]);
  }
  for (const code of main.querySelectorAll("pre code")) {
    if (code.querySelector("[data-judged]") === null) code.textContent = code.textContent;
  }
  return () => taken.forEach(([place, part]) => place.replaceWith(part));
};
const judgeText = async (looks) => {
  const known = new Set(looks);
  axe.configure({
    rules: [
      { id: "color-contrast", selector: "[data-judged]" },
      { id: "link-in-text-block", selector: "a[href][data-judged]" },
    ],
  });
  markNew(known);
  const putBack = lighten();
  const found = await judge("main", {});
  document.documentElement.classList.toggle("dark");
  if (markNew(known)) found.push(...(await judge("main", { runOnly: ["color-contrast"] })));
  document.documentElement.classList.toggle("dark");
  putBack();
  return { looks: [...known], found };
}`;
