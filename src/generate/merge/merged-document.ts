import { objectsDocument } from "../base/custom-object.js";
import type { Document } from "../base/document.js";
import type { ExistingObject } from "../base/existing-object.js";
import type { GenerateProblem } from "../base/generator.js";
import { mergeInto, titleOf } from "./merge-into.js";

/** What a document is merged with. */
interface MergeContext {
  readonly existing: readonly ExistingObject[];
  readonly problems: GenerateProblem[];
  /** Whose settings the document has; undefined: those of `proxies`. */
  readonly service: string | undefined;
  /** What its title says beside of kinds of which the user's are not known. Default nothing. */
  readonly hint?: (merged: ReadonlySet<string>) => string;
}

/** A file of objects, each in the user's where there is one for the same; its title says so. */
export function mergedDocument(
  { path, title, parts }: Document,
  { existing, problems, service, hint = () => "" }: MergeContext,
): Document {
  const made = mergeInto(existing, parts, service);
  problems.push(...made.problems);
  const names = made.merged.map(titleOf).join(", ");
  const yours = names === "" ? "" : `\nYour object, with these settings: ${names}.`;
  const hinted = hint(new Set(made.merged.map(({ kind }) => kind)));
  return objectsDocument(path, `${title}${hinted}${yours}`, made.objects);
}
