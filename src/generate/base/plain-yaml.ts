import type { Document } from "yaml";
import type { PlainValue } from "./plain-tree.js";

/** What a document holds, or why that cannot be told. */
type ReadDocument =
  /** @property tree undefined for a document that holds nothing */
  | { readonly kind: "read"; readonly tree: PlainValue | undefined }
  | { readonly kind: "unreadable"; readonly why: string };

/** A document of YAML without what is null, which JSON's form of a message takes for absent. */
export function readPlain(document: Document.Parsed): ReadDocument {
  try {
    const json = JSON.stringify(document.toJS() ?? "");
    const tree: PlainValue | undefined = JSON.parse(json, dropEmpty);
    return { kind: "read", tree: tree === "" ? undefined : tree };
  } catch {
    // The library counts what aliases stand for.
    return { kind: "unreadable", why: "its aliases expand to too much" };
  }
}

/** A reviver for JSON: what is null is absent; in a list, where nothing can be absent, empty. */
export function dropEmpty(this: unknown, _: string, value: unknown): unknown {
  return value ?? (Array.isArray(this) ? "" : undefined);
}
