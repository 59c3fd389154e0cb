/**
 * What a generator hands out: files as values, in the order that people read them, with comments.
 * Nothing here is text yet; `render.ts` makes it, the same for the same document, byte by byte.
 */

/** A value of a document. The names of a map keep the order in which they were written. */
export type Tree = string | number | boolean | readonly Tree[] | TreeMap | Noted;

/** A map of a document; a name whose value is undefined is left out. */
export interface TreeMap {
  readonly [name: string]: Tree | undefined;
}

/** A value with a comment before it. */
export class Noted {
  /** One line or more, without `#`. */
  readonly comment: string;
  readonly value: Tree;

  constructor(comment: string, value: Tree) {
    this.comment = comment;
    this.value = value;
  }
}

/** Puts a comment before a value. */
export function noted(comment: string, value: Tree): Noted {
  return new Noted(comment, value);
}

/** What a document is, and so by what it is checked before it is printed. */
export type DocumentKind =
  /** One of Envoy's messages, such as `envoy.config.bootstrap.v3.Bootstrap`, or a list of one. */
  | { readonly format: "yaml"; readonly is: "envoy"; readonly message: string }
  /** Objects of Kubernetes, `---` between them; patches of Envoy in them are checked as such. */
  | { readonly format: "yaml"; readonly is: "kubernetes" }
  /** YAML that a tool reads and that has a schema of its own. */
  | { readonly format: "yaml"; readonly is: "rules" | "values" | "compose" }
  | { readonly format: "json"; readonly is: "dashboard" | "schema" }
  | { readonly format: "text" };

/** One file. */
export interface Document {
  /** Below the folder that is generated to, with `/`; no `..` and no absolute one. */
  readonly path: string;
  readonly kind: DocumentKind;
  /** One or more YAML documents; one value of JSON; one text. */
  readonly parts: readonly Tree[];
  /** What it is and how it is applied: the first comment, where the format has comments. */
  readonly title: string;
}
