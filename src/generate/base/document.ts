/**
 * The output of a generator: files as values with comments, in the order in which people read them.
 * Nothing here is text yet. `render.ts` renders it, byte for byte the same for the same document.
 */

/** A value of a document. Maps keep the order in which their names were written. */
export type Tree = string | number | boolean | readonly Tree[] | TreeMap | Noted;

/** A map of a document. Names whose value is undefined are left out. */
export interface TreeMap {
  readonly [name: string]: Tree | undefined;
}

/** A value that is preceded by a comment. */
export class Noted {
  /** One or more lines, without `#`. */
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

/** The kind of a document, which determines how it is checked before it is rendered. */
export type DocumentKind =
  /** One Envoy message, such as `envoy.config.bootstrap.v3.Bootstrap`, or a list of them. */
  | { readonly format: "yaml"; readonly is: "envoy"; readonly message: string }
  /** Kubernetes objects, separated by `---`. Envoy patches in them are checked, too. */
  | { readonly format: "yaml"; readonly is: "kubernetes" }
  /** YAML that another tool reads and that has its own schema. */
  | { readonly format: "yaml"; readonly is: "rules" | "values" | "compose" }
  | { readonly format: "json"; readonly is: "dashboard" | "schema" }
  | { readonly format: "text" };

/** One file. */
export interface Document {
  /** Path below the output folder, separated by `/`. Neither absolute nor with `..`. */
  readonly path: string;
  readonly kind: DocumentKind;
  /** One or more YAML documents, one JSON value, or one text. */
  readonly parts: readonly Tree[];
  /** What the file is and how it is applied. The first comment, if the format has comments. */
  readonly title: string;
}
