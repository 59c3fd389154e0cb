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
  /** Known, but not served yet. */
  readonly laterNames: readonly string[];
  /** Served in `kind: Policy` only; empty there. */
  readonly ownNames: readonly string[];
}

const laterDescriptorNames = [
  "quota_mode",
  "detailed_metric",
  "value_to_metric",
  "share_threshold",
  "metadata",
];
const descriptorNames = ["key", "value", "rate_limit", "descriptors", "shadow_mode"];
const ownDescriptorNames = ["rate_limits", "on_store_failure"];
const rateLimitNames = ["unit", "requests_per_unit", "unlimited", "name"];
const ownRateLimitNames = ["burst", "period", "charge", "peek"];
const laterOwnRateLimitNames = ["algorithm", "time_zone"];

/** A descriptor. Source: envoyproxy/ratelimit, `YamlDescriptor` in src/config/config_impl.go. */
export const descriptorShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a descriptor",
    names: descriptorNames,
    laterNames: laterDescriptorNames,
    ownNames: ownDescriptorNames,
  },
  headgate: {
    title: "a descriptor",
    names: [...descriptorNames, ...ownDescriptorNames],
    laterNames: laterDescriptorNames,
    ownNames: [],
  },
};

/** A limit. Source: envoyproxy/ratelimit, `YamlRateLimit` in src/config/config_impl.go. */
export const rateLimitShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a rate_limit",
    names: rateLimitNames,
    laterNames: ["replaces"],
    ownNames: [...ownRateLimitNames, ...laterOwnRateLimitNames],
  },
  headgate: {
    title: "a rate_limit",
    names: [...rateLimitNames, ...ownRateLimitNames],
    laterNames: ["replaces", ...laterOwnRateLimitNames],
    ownNames: [],
  },
};

/** A file of envoyproxy/ratelimit; in a policy, one item of `rateLimits`. */
export const domainShapes: Readonly<Record<Dialect, Shape>> = {
  ratelimit: {
    title: "a ratelimit file",
    names: ["domain", "descriptors"],
    laterNames: [],
    ownNames: ["on_store_failure"],
  },
  headgate: {
    title: "an item of rateLimits",
    names: ["domain", "descriptors", "on_store_failure"],
    laterNames: [],
    ownNames: [],
  },
};

/** The top of a `kind: Policy` file. */
export const policyShape: Shape = {
  title: "a policy",
  names: ["apiVersion", "kind", "metadata", "spec"],
  laterNames: [],
  ownNames: [],
};

/** `metadata` of a policy. */
export const metadataShape: Shape = {
  title: "metadata",
  names: ["name"],
  laterNames: ["namespace", "labels", "annotations"],
  ownNames: [],
};

/** `spec` of a policy. */
export const specShape: Shape = {
  title: "spec",
  names: ["rateLimits"],
  laterNames: ["services", "proxies", "quotas"],
  ownNames: [],
};
