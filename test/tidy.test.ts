import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import {
  checkCycles,
  checkDirections,
  checkExportForms,
  checkFolderCycles,
  checkTargetsExist,
} from "./tidy/imports.js";
import {
  checkDocstrings,
  checkNames,
  checkOneMeaning,
  checkRetiredWords,
  checkStoreNames,
} from "./tidy/names.js";
import { type Project, readProject } from "./tidy/project.js";
import { checkPackages, checkUnreachedFiles, checkUnusedExports } from "./tidy/reach.js";
import { checkSizes } from "./tidy/sizes.js";
import type { Source, Violation } from "./tidy/source.js";
import {
  checkCasts,
  checkExceptions,
  checkGlobals,
  checkLeftovers,
  checkTestSwitches,
  checkTypes,
} from "./tidy/tokens.js";
import {
  checkFolderIndex,
  checkFolderSizes,
  checkMirrors,
  checkPasswords,
  checkPlaces,
  checkTopLevel,
  checkTracked,
} from "./tidy/tree.js";

const perFile = (check: (source: Source) => readonly Violation[]) => (project: Project) =>
  project.sources.flatMap(check);

const mapOf = (texts: Project["texts"]): string =>
  texts.find(({ path }) => path === "ARCHITECTURE.md")?.text ?? "";

/** Every rule of the house; one that fails shows all that breaks it at once. */
const rules: readonly {
  readonly rule: string;
  readonly check: (project: Project) => readonly Violation[];
}[] = [
  { rule: "imports only what the table allows", check: perFile(checkDirections) },
  { rule: "imports files that are there", check: ({ sources }) => checkTargetsExist(sources) },
  { rule: "imports in no circle", check: ({ sources }) => checkCycles(sources) },
  { rule: "imports in no circle of folders", check: ({ sources }) => checkFolderCycles(sources) },
  {
    rule: "keeps folders small",
    check: ({ sources }) => checkFolderSizes(sources.map(({ path }) => path)),
  },
  {
    rule: "has each folder in the map of the architecture",
    check: ({ sources, texts }) =>
      checkFolderIndex(
        sources.map(({ path }) => path),
        mapOf(texts),
      ),
  },
  { rule: "exports by name, from the file that defines", check: perFile(checkExportForms) },
  { rule: "keeps files, functions and lines short", check: perFile(checkSizes) },
  { rule: "leaves time, chance and output to the shells", check: perFile(checkGlobals) },
  { rule: "holds no any, `!`, null, enum or state", check: perFile(checkTypes) },
  { rule: "casts only where text or wire is decoded", check: perFile(checkCasts) },
  {
    rule: "keeps no exception for what is gone",
    check: ({ sources }) => checkExceptions(sources.map(({ path }) => path)),
  },
  { rule: "runs every test", check: perFile(checkTestSwitches) },
  { rule: "leaves no unfinished work", check: perFile(checkLeftovers) },
  { rule: "says what every export is", check: perFile(checkDocstrings) },
  { rule: "has names that say something", check: perFile(checkNames) },
  { rule: "exports one thing by one name", check: ({ sources }) => checkOneMeaning(sources) },
  { rule: "uses the words of the field", check: perFile(checkRetiredWords) },
  { rule: "names no store's product where any may stand", check: perFile(checkStoreNames) },
  {
    rule: "reaches every file",
    check: ({ sources, manifest }) => checkUnreachedFiles(sources, manifest),
  },
  { rule: "exports what others use", check: ({ sources }) => checkUnusedExports(sources) },
  {
    rule: "lists the packages that it uses",
    check: ({ sources, manifest }) => checkPackages(sources, manifest),
  },
  {
    rule: "names unit tests after what they test",
    check: ({ sources }) => checkMirrors(sources.map(({ path }) => path)),
  },
  { rule: "has the top level that was designed", check: ({ tracked }) => checkTopLevel(tracked) },
  { rule: "commits nothing that is made", check: ({ tracked }) => checkTracked(tracked) },
  {
    rule: "ships no password",
    check: ({ texts }) => texts.flatMap(({ path, text }) => checkPasswords(path, text)),
  },
  {
    rule: "names no machine and no registry",
    check: ({ texts }) => texts.flatMap(({ path, text }) => checkPlaces(path, text)),
  },
];

describe("the house", () => {
  let project: Project;

  beforeAll(() => {
    project = readProject(fileURLToPath(new URL("..", import.meta.url)));
  });

  for (const { rule, check } of rules) {
    it(rule, () => {
      const lines = check(project).map(({ path, line, message }) => `${path}:${line} ${message}`);
      expect(lines.join("\n")).toBe("");
    });
  }
});
