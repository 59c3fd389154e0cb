/** The two languages in which a policy file may be written. */
export type Dialect =
  /** The YAML of envoyproxy/ratelimit, unchanged. */
  | "ratelimit"
  /** `apiVersion: headgate.dev/v1alpha1`, `kind: Policy`. */
  | "headgate";

/** The names that a map may contain. */
export interface Shape<Name extends string = string> {
  /** For messages: `a descriptor`. */
  readonly title: string;
  /** In the recommended order. */
  readonly names: readonly Name[];
  /** Names that count as left out if nothing follows the `:`. */
  readonly blankNames: readonly string[];
  /** Known, but not supported yet. */
  readonly laterNames: readonly string[];
  /** Supported in `kind: Policy` only; empty there. */
  readonly ownNames: readonly string[];
}
