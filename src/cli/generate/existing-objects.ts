import { readPolicyFiles } from "../../app/config/policy-files.js";
import type { Document } from "../../generate/base/document.js";
import {
  type ExistingObject,
  type ExistingProblem,
  readExisting,
} from "../../generate/base/existing-object.js";
import { isPlainMap, mapIn, plainTree } from "../../generate/base/plain-tree.js";
import { hasObjects } from "../../generate/check/check-objects.js";
import { titleOf } from "../../generate/merge/merge-into.js";
import type { PolicyText } from "../../policy/parse.js";
import type { LocatedProblem } from "./located-problems.js";

/** Objects of files that `--with` names, or what is wrong with them. */
type ReadObjects =
  | { readonly kind: "read"; readonly objects: readonly ExistingObject[] }
  | { readonly kind: "unreadable"; readonly message: string }
  | { readonly kind: "problems"; readonly problems: readonly LocatedProblem[] };

/** Reads files of objects, or all YAML files of folders; each once. */
export async function readObjects(paths: readonly string[]): Promise<ReadObjects> {
  const files: PolicyText[] = [];
  for (const path of new Set(paths)) {
    const read = await readPolicyFiles(path);
    if (read.kind === "unreadable") return read;
    files.push(...read.sources);
  }
  const { objects, problems } = readExisting(files);
  if (problems.length === 0) return { kind: "read", objects };
  return { kind: "problems", problems: problems.map(located) };
}

function located({ expected, suggestion: _none, ...problem }: ExistingProblem): LocatedProblem {
  const hint = expected ?? "write objects of a cluster, in YAML";
  return { ...problem, hint, severity: "error", service: undefined, path: [] };
}

/** Titles of the user's objects into which nothing went, and which are not printed. */
export function leftOut(
  objects: readonly ExistingObject[],
  documents: readonly Document[],
): readonly string[] {
  const made = new Set(documents.filter(hasObjects).flatMap(({ parts }) => parts.map(keyOfPart)));
  return objects.filter((one) => !made.has(titleOf(one))).map(titleOf);
}

function keyOfPart(part: Document["parts"][number]): string {
  const plain = plainTree(part);
  if (!isPlainMap(plain)) return "";
  const { name, namespace } = mapIn(plain, "metadata");
  return `${String(plain["kind"])} ${String(namespace)}/${String(name)}`;
}
