import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A page of the documentation, by its path in the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced block of a page, with the mark of the test that runs it. */
export interface Block {
  readonly path: string;
  /** The line of its fence, from 1. */
  readonly line: number;
  readonly language: string;
  /** What stands in `<!-- test: MARK -->` right before it. */
  readonly mark: string | undefined;
  readonly text: string;
}

/** Pages beside the folder `docs`. */
const topPages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "envoy/waiting-room/README.md",
  "k8s/README.md",
];

/** Every page that users read, in a fixed order. */
export function readPages(): readonly Page[] {
  const below = readdirSync("docs", { recursive: true, encoding: "utf8" })
    // What begins with a dot builds the site, and has packages of its own.
    .filter((path) => path.endsWith(".md") && !path.startsWith("."))
    .map((path) => join("docs", path))
    .sort();
  return [...topPages, ...below].map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

/** The fenced blocks of a page, in order. */
export function blocksOf({ path, text }: Page): readonly Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  let begin: number | undefined;
  for (const [i, line] of lines.entries()) {
    if (!line.startsWith("```")) continue;
    if (begin === undefined) {
      begin = i;
      continue;
    }
    const [, mark] = /^<!-- test: (.+) -->$/.exec(lines[begin - 1] ?? "") ?? [];
    const language = (lines[begin] ?? "").slice(3);
    const block = lines.slice(begin + 1, i).join("\n");
    blocks.push({ path, line: begin + 1, language, mark, text: block });
    begin = undefined;
  }
  return blocks;
}

/** All blocks of the documentation with a mark. */
export function markedBlocks(mark: string): readonly Block[] {
  return readPages()
    .flatMap(blocksOf)
    .filter((block) => block.mark === mark);
}

/** The one block of the documentation with a mark; throws where there is none, or several. */
export function markedBlock(mark: string): string {
  const [block, ...others] = markedBlocks(mark);
  if (block === undefined || others.length > 0) {
    throw new Error(`${others.length + (block === undefined ? 0 : 1)} blocks are marked ${mark}`);
  }
  return block.text;
}

/** A page of the reference, which is made from the code. */
export function referencePage(name: string): string {
  return readFileSync(`docs/reference/${name}`, "utf8");
}

/** A page without its code, comments and tables: what is read as sentences. */
export function proseOf(text: string): string {
  return text
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/^```[\s\S]*?^```$/gm, "")
    .replace(/^\|.*$/gm, "")
    .replace(/^<.*>$/gm, "");
}

/** What a user of Redis is documented to need for keys that signals read: `+get` and so on. */
export function signalKeyRights(): string {
  const found = readPages().flatMap(({ text }) => [...text.matchAll(/also needs `~KEY (.*)`/g)]);
  if (found.length !== 1) throw new Error(`the rights stand on ${found.length} pages`);
  return found[0]?.[1] ?? "";
}
