import type { Document } from "yaml";
import type { PlainValue } from "./plain-tree.js";

/** The content of a document, or the reason why it cannot be read. */
type ReadDocument =
  /** @property tree undefined if the document is empty */
  | { readonly kind: "read"; readonly tree: PlainValue | undefined }
  | { readonly kind: "unreadable"; readonly why: string };

/** Reads a YAML document without its nulls, which ProtoJSON treats as absent. */
export function readPlain(document: Document.Parsed): ReadDocument {
  try {
    const json = JSON.stringify(document.toJS() ?? "");
    const tree: PlainValue | undefined = JSON.parse(json, dropEmpty);
    return { kind: "read", tree: tree === "" ? undefined : tree };
  } catch {
    // The library limits how far aliases expand.
    return { kind: "unreadable", why: "its aliases expand to too much" };
  }
}

/** JSON reviver: drops nulls. In a list, where nothing can be absent, they become empty texts. */
export function dropEmpty(this: unknown, _: string, value: unknown): unknown {
  return value ?? (Array.isArray(this) ? "" : undefined);
}
