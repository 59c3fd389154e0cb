/** The two languages a policy file may be written in. */
export type Dialect =
  /** The YAML of envoyproxy/ratelimit, as it is. */
  | "ratelimit"
  /** `apiVersion: headgate.dev/v1alpha1`, `kind: Policy`. */
  | "headgate";

/** The names that a map may hold. */
export interface Shape<Name extends string = string> {
  /** For messages: `a descriptor`. */
  readonly title: string;
  /** In the order in which they are best written. */
  readonly names: readonly Name[];
  /** Names that, with nothing after the `:`, count as left out. */
  readonly blankNames: readonly string[];
  /** Known, but not served yet. */
  readonly laterNames: readonly string[];
  /** Served in `kind: Policy` only; empty there. */
  readonly ownNames: readonly string[];
}
