import { objectsDocument } from "../base/custom-object.js";
import type { Document } from "../base/document.js";
import type { ExistingObject } from "../base/existing-object.js";
import type { GenerateProblem } from "../base/generator.js";
import { mergeInto, titleOf } from "./merge-into.js";

/** What a document is merged with. */
interface MergeContext {
  readonly existing: readonly ExistingObject[];
  readonly problems: GenerateProblem[];
  /** The service whose settings the document has. Undefined: those of `proxies`. */
  readonly service: string | undefined;
  /** Returns text for the title if some kinds were not merged. Default: none. */
  readonly hint?: (merged: ReadonlySet<string>) => string;
}

/** Merges a document's objects into the user's for the same target. The title lists those. */
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
