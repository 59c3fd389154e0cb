import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { readPages } from "../support/docs.js";
import { measure, sentencesOf, termsOf } from "../support/reading.js";

const pages = readPages();

/** Pages that are written by hand: the rules of length and language are for them. */
const guides = pages.filter(({ path }) =>
  /^(?:CONTRIBUTING|docs\/(?!reference\/|runbooks\/))/.test(path),
);

const runbooks = pages.filter(({ path }) => path.startsWith("docs/runbooks/"));

/** Source: github-slugger; how GitHub makes the anchor of a heading. */
function anchorOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

function anchorsOf(text: string): ReadonlySet<string> {
  const counts = new Map<string, number>();
  const headings = text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/^#{1,6} (.+)$/gm);
  const ids = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id);
  return new Set([
    ...ids,
    ...[...headings].map(([, heading = ""]) => {
      const anchor = anchorOf(heading);
      const count = counts.get(anchor) ?? 0;
      counts.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  ]);
}

/** Targets of links and images, without those in code. */
function targetsOf(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  const images = [...prose.matchAll(/<img src="([^"]+)"/g)].map(([, target = ""]) => target);
  return [...links, ...images];
}

/** What is wrong with a link of a page; undefined: nothing. */
function brokenLink(path: string, target: string): string | undefined {
  if (/^(https:|mailto:)/.test(target)) return undefined;
  if (/^\w+:|^\//.test(target)) return "is neither relative nor https";
  const [file = "", anchor] = target.split("#");
  const place = file === "" ? path : normalize(join(dirname(path), file));
  if (!existsSync(place)) return "is not there";
  if (anchor === undefined || statSync(place).isDirectory()) return undefined;
  if (!place.endsWith(".md")) return undefined;
  return anchorsOf(readFileSync(place, "utf8")).has(anchor) ? undefined : "has no such heading";
}

describe("pages of the documentation", () => {
  it("link to what is there", () => {
    const broken = [...pages, { path: "CHANGELOG.md", text: readFileSync("CHANGELOG.md", "utf8") }]
      .flatMap(({ path, text }) => targetsOf(text).map((target) => ({ path, target })))
      .flatMap(({ path, target }) => {
        const wrong = brokenLink(path, target);
        return wrong === undefined ? [] : [`${path}: ${target} ${wrong}`];
      });
    expect(broken).toEqual([]);
  });

  it("are all reached from the README", () => {
    const reached = new Set<string>();
    const waiting = ["README.md"];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (reached.has(path) || !path.endsWith(".md") || !existsSync(path)) continue;
      reached.add(path);
      for (const target of targetsOf(readFileSync(path, "utf8"))) {
        waiting.push(normalize(join(dirname(path), target.split("#")[0] ?? "")));
      }
    }
    expect(pages.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([]);
  });

  it("are all in the table of contents, but for the runbooks, which have their own", () => {
    const listed = targetsOf(readFileSync("docs/README.md", "utf8")).map((target) =>
      normalize(join("docs", target.split("#")[0] ?? "")),
    );
    const wanted = pages.filter(({ path }) =>
      /^docs\/(?!reference\/|runbooks\/|README)/.test(path),
    );
    expect(wanted.map(({ path }) => path).filter((path) => !listed.includes(path))).toEqual([]);
  });

  it("show pictures that stand for themselves", () => {
    for (const name of ["where-it-stands", "demo"]) {
      const text = readFileSync(`docs/images/${name}.svg`, "utf8");
      // A title for those who cannot see it, a background for any theme, nothing from elsewhere.
      expect(text, name).toMatch(/^<svg [^>]*viewBox="0 0 \d+ \d+" role="img"/);
      expect(text, name).toMatch(/<title/);
      expect(text, name).toMatch(/<rect /);
      expect(text, name).not.toMatch(/<script|<image|href=/);
    }
  });

  it("promise no speed but what was measured", () => {
    const [, table = ""] =
      /\n## How fast\n([\s\S]*?)\n## /.exec(readFileSync("README.md", "utf8")) ?? [];
    const figures = [...table.matchAll(/\| ([\d,.]+) (?=\|)/g)].map(([, figure = ""]) => figure);
    expect(figures.length).toBeGreaterThanOrEqual(9);
    const measured = readFileSync("docs/internals/performance.md", "utf8");
    for (const figure of figures) expect(measured).toContain(` ${figure} `);
  });

  it("have one title, on the first line", () => {
    const wrong = pages.filter(({ text }) => {
      const titles = text.replace(/^```[\s\S]*?^```$/gm, "").match(/^# .+$/gm) ?? [];
      return titles.length !== 1 || !text.startsWith("# ");
    });
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it("name modules that there are, where they are about the inside", () => {
    const folders = readdirSync("src", { withFileTypes: true }).map(({ name }) => name);
    const module = new RegExp(`^(?:(?:${folders.join("|")})(?:/[\\w.-]+)+|test(?:/[\\w.-]+)+)$`);
    const gone = pages
      .filter(({ path }) => path.startsWith("docs/internals/") || path === "ARCHITECTURE.md")
      .flatMap(({ path, text }) =>
        [...text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g)]
          .map(([, name = ""]) => name)
          .filter((name) => module.test(name))
          .map((name) => (name.startsWith("test/") ? name : `src/${name}`))
          .filter((name) => !["", ".ts"].some((end) => existsSync(`${name}${end}`)))
          .map((name) => `${path}: ${name}`),
      );
    expect(gone).toEqual([]);
  });

  it("name commands that there are", () => {
    const known = new Set(["help", "keys help"]);
    const groups = new Set<string>();
    for (const file of readdirSync("docs/reference/cli")) {
      const text = readFileSync(`docs/reference/cli/${file}`, "utf8");
      for (const [, name = ""] of text.matchAll(/^#+ headgate ([a-z -]+)$/gm)) {
        known.add(name);
        if (name.includes(" ")) groups.add(name.split(" ")[0] ?? "");
      }
    }
    const wrong = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/`headgate ([a-z]+)(?: ([a-z]+))?(?=[ `])/g)]
        .filter(([, command = "", sub = ""]) => {
          return !known.has(groups.has(command) && sub !== "" ? `${command} ${sub}` : command);
        })
        .map(([words]) => `${path}: ${words}`),
    );
    expect(known.size).toBeGreaterThan(30);
    expect(wrong).toEqual([]);
  });

  it("use no HTML but images, and anchors in what is generated", () => {
    const tags = pages.flatMap(({ path, text }) => {
      const prose = text
        .replace(/^```[\s\S]*?^```$/gm, "")
        .replace(/`[^`\n]*`/g, "")
        .replace(/<!--[\s\S]*?-->/g, "");
      const found = [...prose.matchAll(/<\/?([a-z]\w*)[^>]*>/g)];
      const taken = path.startsWith("docs/reference/") ? ["img", "a"] : ["img"];
      return found.filter(([, tag = ""]) => !taken.includes(tag)).map(([tag]) => `${path}: ${tag}`);
    });
    expect(tags).toEqual([]);
  });

  it("begin with what the reader will be able to do, or will find", () => {
    const wrong = [...guides, ...runbooks].filter(({ text }) => {
      const [, first = ""] = /^# .+\n\n([\s\S]*?)\n\n/.exec(text) ?? [];
      return (
        !/^This (?:page|guide|tutorial) (?:shows|explains|describes|lists) /.test(first) ||
        sentencesOf(first).length !== 1
      );
    });
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it("are as long as one sitting: 60 to 200 lines, and a README of 150", () => {
    const lines = ({ text }: { readonly text: string }) => text.trimEnd().split("\n").length;
    const long = guides.filter((page) => lines(page) > 200 || lines(page) < 60);
    expect(long.map((page) => `${page.path}: ${lines(page)}`)).toEqual([]);
    // Who is woken by an alert reads one page, and no more than fits on a screen or two.
    const alerts = runbooks.filter((page) => lines(page) > 100 || lines(page) < 60);
    expect(alerts.map(({ path }) => path)).toEqual([]);
    const readme = pages.filter(({ path }) => path === "README.md");
    expect(readme.map(lines)[0]).toBeLessThanOrEqual(150);
  });
});

/**
 * Bounds of what is asked of a reader. Guides to plain language ask for 15 to 20 words a sentence
 * in the mean and none above 40: most here are below, and a list of names makes one longer. A page
 * of more than 1,500 words takes longer than seven minutes to read. A term of ours that has no link
 * may be one that the page itself is about.
 */
const bounds = { words: 1_500, meanSentence: 18, longestSentence: 42, unlinkedTerms: 1 };

describe("how pages read", () => {
  const terms = termsOf(readFileSync("docs/glossary.md", "utf8"));
  const measured = pages.map(({ path, text }) => ({ path, ...measure(text, terms) }));

  it("is printed for every page", () => {
    const rows = measured.map(({ path, words, meanSentence, longestSentence, unlinkedTerms }) =>
      [
        path.padEnd(50),
        String(words).padStart(5),
        meanSentence.toFixed(1).padStart(5),
        String(longestSentence).padStart(4),
        ` ${unlinkedTerms.join(", ")}`,
      ].join(" "),
    );
    const title = `${"page".padEnd(50)} words  mean  max  terms that are not linked`;
    process.stdout.write(`${[title, ...rows].join("\n")}\n`);
    expect(rows).toHaveLength(pages.length);
  });

  it.each([...guides, ...runbooks].map(({ path }) => path))("stays within bounds: %s", (path) => {
    const found = measured.find((one) => one.path === path);
    const terms = path === "docs/glossary.md" ? [] : (found?.unlinkedTerms ?? []);
    expect(found?.words).toBeLessThanOrEqual(bounds.words);
    expect(found?.meanSentence).toBeLessThanOrEqual(bounds.meanSentence);
    expect(found?.longestSentence, found?.longestText).toBeLessThanOrEqual(bounds.longestSentence);
    if (path.startsWith("docs/runbooks/")) return;
    expect(terms.length, terms.join(", ")).toBeLessThanOrEqual(bounds.unlinkedTerms);
  });
});
