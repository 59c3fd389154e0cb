/**
 * Which Markdown files are pages of the site, where each one is, and what the navigation shows. All
 * of it follows from the folders: a new page needs nothing here.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** The top of the repository. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Pages that lie at the top of the repository. */
const topPages = {
  "README.md": "index.md",
  "docs/README.md": "documentation.md",
  "ARCHITECTURE.md": "project/architecture.md",
  "CONTRIBUTING.md": "project/contributing.md",
  "SECURITY.md": "project/security.md",
  "CHANGELOG.md": "project/changelog.md",
};

/** Sections in the order of the navigation; folders that are not named come after them. */
const sectionOrder = ["start", "concepts", "guides", "runbooks", "security", "reference"].concat([
  "internals",
  "project",
]);

/** Where a page is in the site, by its path in the repository; undefined for what is no page. */
export function sitePath(path) {
  if (Object.hasOwn(topPages, path)) return topPages[path];
  if (!path.startsWith("docs/") || !path.endsWith(".md") || path.includes("/.")) return undefined;
  return path.slice("docs/".length).replace(/(^|\/)README\.md$/, "$1index.md");
}

/** The pages, by their path in the repository. */
export const pages = new Map(
  [...Object.keys(topPages), ...markdownUnder("docs")].flatMap((path) => {
    const place = sitePath(path);
    return place === undefined || !existsSync(join(root, path)) ? [] : [[path, place]];
  }),
);

function markdownUnder(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name.startsWith(".") ? [] : markdownUnder(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

function titleOf(path) {
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** The pages of a section as entries of the sidebar, those of a folder below its own page. */
function entriesOf(section) {
  const own = [...pages].filter(([, place]) => place.startsWith(`${section}/`));
  const entries = own
    .filter(([, place]) => place.split("/").length === 2)
    .map(([path, place]) => {
      const folder = `${place.replace(/\.md$/, "")}/`;
      const below = own
        .filter(([, other]) => other.startsWith(folder))
        .map(entry)
        .sort(byText);
      return {
        ...entry([path, place]),
        ...(below.length > 0 && { items: below, collapsed: true }),
      };
    });
  const isIndex = ({ link }) => link.endsWith("/");
  return [...entries.filter(isIndex), ...entries.filter((one) => !isIndex(one)).sort(byText)];
}

function entry([path, place]) {
  return { text: titleOf(path), link: linkTo(place) };
}

function byText({ text: a }, { text: b }) {
  return a < b ? -1 : 1;
}

function linkTo(place) {
  return `/${place.replace(/(?:(^|\/)index)?\.md$/, "$1")}`;
}

function sectionTitle(section) {
  return section.charAt(0).toUpperCase() + section.slice(1).replaceAll("-", " ");
}

const sections = [...new Set([...pages.values()].map((place) => place.split("/")))]
  .filter((parts) => parts.length > 1)
  .map(([section]) => section)
  .filter((section, i, all) => all.indexOf(section) === i)
  .sort((a, b) => rank(a) - rank(b));

function rank(section) {
  const place = sectionOrder.indexOf(section);
  return place === -1 ? sectionOrder.length : place;
}

/** Beside a page stand the pages of its section; beside the first one all sections. */
export const sidebar = {
  ...Object.fromEntries(
    sections.map((section) => [
      `/${section}/`,
      [{ text: sectionTitle(section), items: entriesOf(section) }],
    ]),
  ),
  "/": [
    ...sections.map((section) => ({
      text: sectionTitle(section),
      items: entriesOf(section).map(({ text, link }) => ({ text, link })),
    })),
    { text: "More", items: [...pages].filter(([, place]) => isLoose(place)).map(entry) },
  ],
};

/** Pages of no section, such as the glossary. */
function isLoose(place) {
  return !place.includes("/") && place !== "index.md";
}

/** The sections, each by its first page. */
export const nav = sections.flatMap((section) => {
  const [first] = entriesOf(section);
  const activeMatch = `^/${section}/`;
  return first === undefined
    ? []
    : [{ text: sectionTitle(section), link: first.link, activeMatch }];
});

/**
 * Where a link of a page leads: a page of the site, a file of the repository that the site carries,
 * or undefined where there is nothing that a reader could open.
 */
export function resolveLink(href, fromPath) {
  const [target, fragment] = href.split("#");
  if (target === "") return { kind: "page", href };
  const path = posix.normalize(posix.join(dirname(fromPath), decodeURI(target)));
  const below = [...pages.keys()].filter((one) => one.startsWith(`${path}/`));
  const place = pages.get(path) ?? pages.get(posix.join(path, "README.md")) ?? pages.get(below[0]);
  const hash = fragment === undefined ? "" : `#${fragment}`;
  if (place !== undefined) return { kind: "page", href: `/${place}${hash}` };
  const full = join(root, path);
  const isFile = !path.startsWith("..") && existsSync(full) && statSync(full).isFile();
  return isFile ? { kind: "file", path } : undefined;
}
