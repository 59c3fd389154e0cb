/** The two languages a policy file may be written in. */
export type Dialect =
  /** The YAML of envoyproxy/ratelimit, as it is. */
  | "ratelimit"
  /** `apiVersion: headgate.dev/v1alpha1`, `kind: Policy`. */
  | "headgate";

/** The names that a map may hold. */
export interface Shape {
  /** For messages: `a descriptor`. */
  readonly title: string;
  readonly names: readonly string[];
  /** Names that, with nothing after the `:`, count as left out. */
  readonly blankNames: readonly string[];
  /** Known, but not served yet. */
  readonly laterNames: readonly string[];
  /** Served in `kind: Policy` only; empty there. */
  readonly ownNames: readonly string[];
}

const descriptorNames = [
  "key",
  "value",
  "rate_limit",
  "descriptors",
  "shadow_mode",
  "quota_mode",
  "detailed_metric",
  "value_to_metric",
  "share_threshold",
  "metadata",
];
const ownDescriptorNames = ["rate_limits", "on_store_failure", "headers", "body"];
const rateLimitNames = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];
const ownRateLimitNames = ["burst", "period", "charge", "peek", "algorithm", "time_zone"];

/** A descriptor. Source: envoyproxy/ratelimit, `YamlDescriptor` in src/config/config_impl.go. */
export const descriptorShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a descriptor",
    names: descriptorNames,
    blankNames: descriptorNames.filter((name) => name !== "key"),
    laterNames: [],
    ownNames: ownDescriptorNames,
  },
  headgate: {
    title: "a descriptor",
    names: [...descriptorNames, ...ownDescriptorNames],
    blankNames: ["value", "descriptors"],
    laterNames: [],
    ownNames: [],
  },
};

/** A limit. Source: envoyproxy/ratelimit, `YamlRateLimit` in src/config/config_impl.go. */
export const rateLimitShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a rate_limit",
    names: rateLimitNames,
    blankNames: rateLimitNames.filter((name) => name !== "unit"),
    laterNames: [],
    ownNames: ownRateLimitNames,
  },
  headgate: {
    title: "a rate_limit",
    names: [...rateLimitNames, ...ownRateLimitNames],
    blankNames: [],
    laterNames: [],
    ownNames: [],
  },
};

/** An item of `replaces`. Source: envoyproxy/ratelimit, `yamlReplaces`. */
export const replacesShape: Shape = {
  title: "an item of replaces",
  names: ["name"],
  blankNames: [],
  laterNames: [],
  ownNames: [],
};

/** A file of envoyproxy/ratelimit; in a policy, one item of `rateLimits`. */
export const domainShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a ratelimit file",
    names: ["domain", "descriptors"],
    blankNames: ["descriptors"],
    laterNames: [],
    ownNames: ["on_store_failure"],
  },
  headgate: {
    title: "an item of rateLimits",
    names: ["domain", "descriptors", "on_store_failure"],
    blankNames: ["descriptors"],
    laterNames: [],
    ownNames: [],
  },
};

/** The top of a `kind: Policy` file. */
export const policyShape: Shape = {
  title: "a policy",
  names: ["apiVersion", "kind", "metadata", "spec"],
  blankNames: [],
  laterNames: [],
  ownNames: [],
};

/** `metadata` of a policy. */
export const metadataShape: Shape = {
  title: "metadata",
  names: ["name"],
  blankNames: [],
  laterNames: ["namespace", "labels", "annotations"],
  ownNames: [],
};

/** `spec` of a policy. */
export const specShape: Shape = {
  title: "spec",
  names: ["rateLimits", "services"],
  blankNames: [],
  laterNames: ["proxies", "quotas"],
  ownNames: [],
};
