import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { nav, pages, resolveLink, root, sidebar, sitePath } from "./pages.mjs";

/** Pages lie above this folder, where there is no Vue: they take the one of this folder. */
const vueFromHere = {
  name: "vue-from-here",
  enforce: "pre",
  resolveId(source, _importer, { ssr }) {
    if (!/^vue(?:\/|$)/.test(source)) return undefined;
    if (ssr === true) return { id: source, external: true };
    return this.resolve(source, fileURLToPath(import.meta.url), { skipSelf: true });
  },
};

/** Files of the repository that pages link to; they are copied beside the pages. */
const linkedFiles = new Set();

/** What holds no page. */
const otherFolders = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "docs")
  .map(({ name }) => name);

/** The anchors of headings as GitHub makes them, so that one link works in both places. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** Links go by the files of the repository; in the site some pages are elsewhere. */
function rewriteLinks(md) {
  md.core.ruler.push("repository-links", (state) => {
    // VitePress tells the page where it will be.
    const place = state.env.relativePath;
    const from = [...pages].find(([, one]) => one === place)?.[0] ?? place;
    for (const block of state.tokens) {
      let isLink = true;
      for (const token of [block, ...(block.children ?? [])]) {
        if (token.type.startsWith("html_")) token.content = relativeImages(token.content);
        if (token.type === "link_open") isLink = rewriteLink(token, from);
        // A folder, or what is not here: words without a link.
        if (!isLink && token.type.startsWith("link_")) token.tag = "span";
      }
    }
  });
  const renderText = md.renderer.rules.text;
  // Two braces are an expression for Vue. Names of alerts break between their words.
  md.renderer.rules.text = (...args) =>
    renderText(...args)
      .replaceAll("{{", "&#123;&#123;")
      .replaceAll(/\b(?:Headgate|Envoy)(?:[A-Z][a-z]+){2,}/g, (name) =>
        name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "<wbr>"),
      );
}

/** Vite knows a path by its beginning. */
function relativeImages(html) {
  return html.replaceAll(/(<img src=")(?!https?:|[./])/g, "$1./");
}

/** Whether a link leads anywhere in the site; then it says where. */
function rewriteLink(token, from) {
  const href = token.attrGet("href");
  if (/^[a-z]+:/i.test(href)) return true;
  const found = resolveLink(href, from);
  if (found?.kind === "page") token.attrSet("href", found.href);
  if (found?.kind === "file") {
    linkedFiles.add(found.path);
    token.attrSet("href", `/files/${found.path}`);
    token.attrSet("target", "_self");
  }
  if (found === undefined) token.attrs = [];
  return found !== undefined;
}

export default defineConfig({
  title: "Headgate",
  description: "Rate limiting and admission control for Envoy fleets.",
  lang: "en",
  srcDir: "..",
  srcExclude: otherFolders.map((name) => `${name}/**`),
  rewrites: (path) => sitePath(path) ?? path,
  cleanUrls: false,
  markdown: {
    anchor: { slugify },
    // The usual ones have too little contrast for small text.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    toc: { slugify },
    config: rewriteLinks,
  },
  themeConfig: {
    nav,
    sidebar,
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: {
        // `HEADGATE_POLICY` is two words for the index: both have to be there.
        miniSearch: { searchOptions: { combineWith: "AND", boost: { title: 4, titles: 2 } } },
      },
    },
    docFooter: { prev: false, next: false },
    footer: { message: "Apache-2.0" },
  },
  vite: {
    plugins: [vueFromHere],
    build: { chunkSizeWarningLimit: 2_000 },
  },
  buildEnd({ outDir }) {
    for (const path of linkedFiles) {
      const to = join(outDir, "files", path);
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(join(root, path), to);
    }
  },
});
