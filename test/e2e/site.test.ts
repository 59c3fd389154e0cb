import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import {
  isPictured,
  narrow,
  type PageFacts,
  Site,
  SiteReader,
  startBrowser,
  wide,
} from "../support/site.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
const screenshots = fileURLToPath(new URL("../../test-output/site/", import.meta.url));

/** Pages of each form: prose, code, tables of several widths. */
const samples = [
  "/project/architecture.html",
  "/reference/errors.html",
  "/reference/policy/quotas.html",
];

/** At both widths. */
async function keepPictures({ page }: SiteReader, path: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true });
  const file = path.slice(1).replaceAll(".html", "").replaceAll("/", "-");
  for (const [name, size] of Object.entries({ wide, narrow })) {
    await page.setViewportSize(size);
    await page.screenshot({ path: `${screenshots}${file}-${name}.png` });
  }
}

describe("the site of the documentation", () => {
  let site: Site;
  let browser: Browser;
  const facts = new Map<string, PageFacts>();

  beforeAll(async () => {
    site = await Site.build(stage);
    browser = await startBrowser(stage);
  }, 300_000);

  it("renders every page at 360 pixels, without a complaint of the browser or of axe", async () => {
    const wrong: string[] = [];
    const judgedLooks = new Set<string>();
    const left = site.paths.values();
    const readSome = async (): Promise<void> => {
      const reader = await SiteReader.open(browser, site, "light");
      await reader.resize(narrow);
      await reader.show("/index.html");
      for (const path of left) {
        await reader.goOn(path);
        const seen = await reader.look();
        facts.set(path, seen);
        if (seen.headings.length !== 1) wrong.push(`${path}: ${seen.headings.length} titles`);
        if (seen.textLength < 100) wrong.push(`${path}: hardly any text`);
        wrong.push(...(await reader.judgeText(judgedLooks)));
        const { overflow } = seen;
        if (overflow > 0) wrong.push(`${path}: ${overflow} px wider than a phone`);
      }
      wrong.push(...reader.troubles.map(({ page, what }) => `${page}: ${what}`));
    };
    await Promise.all([readSome(), readSome()]);
    expect(facts.size).toBeGreaterThan(50);
    expect(wrong).toEqual([]);
  }, 240_000);

  it("links to what is there", () => {
    const broken = [...facts].flatMap(([path, { links }]) =>
      links
        .filter((link) => link.startsWith(site.origin))
        .map((link) => new URL(link))
        .filter(({ pathname, hash }) => {
          const place = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
          const ids = facts.get(place)?.ids;
          const id = decodeURIComponent(hash.slice(1));
          return !site.holds(place) || (ids !== undefined && id !== "" && !ids.includes(id));
        })
        .map(({ pathname, hash }) => `${path}: ${pathname}${hash}`),
    );
    expect([...new Set(broken)]).toEqual([]);
  });

  it.each(["light", "dark"] as const)("can be read by everybody, %s", async (theme) => {
    const reader = await SiteReader.open(browser, site, theme);
    for (const path of samples) {
      await reader.resize(wide);
      await reader.show(path);
      const isDark = "document.documentElement.classList.contains('dark')";
      expect(await reader.page.evaluate(isDark)).toBe(theme === "dark");
      expect(await reader.judge()).toEqual([]);
      if (isPictured) await keepPictures(reader, `${path}-${theme}`);
    }
    expect(reader.troubles).toEqual([]);
  });

  it("finds a setting, an id and a word by its own search", async () => {
    const reader = await SiteReader.open(browser, site, "light");
    await reader.show("/index.html");
    for (const [words, page] of [
      ["HEADGATE_STORE_BUDGET_MS", "/reference/settings.html#store"],
      ["HG142", "/reference/problems.html"],
      ["codel", "/reference/policy/admission.html"],
    ]) {
      await reader.page.click(".DocSearch-Button");
      await reader.page.fill("#localsearch-input", words ?? "");
      const results = reader.page.locator(`#localsearch-list a[href*="${page}"]`);
      await results.first().waitFor();
      await reader.page.keyboard.press("Escape");
    }
    expect(reader.troubles).toEqual([]);
  });
});
