import { readdirSync, readFileSync } from "node:fs";
import type { Node } from "oxc-parser";
import { parseSource, type Source, visit } from "../tidy/source.js";
import type { Folder, Mutant, Place } from "./sample.js";
import { findMutants } from "./stryker.mjs";

/**
 * All mutants of the source below some folders of src, in the order of files and places, but for
 * those of code that runs when its file is loaded: for each of these every test would have to load
 * its files anew.
 */
export async function listMutants(folders: readonly Folder[]): Promise<readonly Mutant[]> {
  const sources = folders
    .flatMap((folder) => filesUnder(`src/${folder}`))
    .map((path) => parseSource(path, readFileSync(path, "utf8")));
  const found = await findMutants(sources);
  return sources.flatMap((source) => {
    const insides = insidesOf(source);
    return found.flatMap((mutant) => {
      if (mutant.path !== source.path) return [];
      const start = offsetOf(source, mutant.start);
      const end = offsetOf(source, mutant.end);
      const isInside = insides.some((node) => node.start < start && end <= node.end);
      return isInside ? [{ ...mutant, original: source.text.slice(start, end) }] : [];
    });
  });
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`)
    .sort();
}

/** What runs after its file was loaded: functions, and the values that properties begin with. */
function insidesOf(source: Source): readonly Node[] {
  const found: Node[] = [];
  const add = (node: Node): void => void found.push(node);
  visit(source, {
    FunctionDeclaration: add,
    FunctionExpression: add,
    ArrowFunctionExpression: add,
    PropertyDefinition: (node) => {
      if (!node.static) add(node);
    },
  });
  return found;
}

function offsetOf({ lineStarts }: Source, { line, column }: Place): number {
  return (lineStarts[line] ?? 0) + column;
}
