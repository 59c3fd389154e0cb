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

/** A shape whose names all need a value, and that has no others. */
export function plainShape<const Name extends string>(
  title: string,
  names: readonly Name[],
): Shape<Name> {
  return { title, names, blankNames: [], laterNames: [], ownNames: [] };
}

/** As they are best written: what is limited, how, and at last what lies below. */
const descriptorNames = [
  "key",
  "value",
  "rate_limit",
  "shadow_mode",
  "quota_mode",
  "share_threshold",
  "detailed_metric",
  "value_to_metric",
  "metadata",
  "descriptors",
] as const;
const ownDescriptorNames = [
  "rate_limits",
  "on_store_failure",
  "headers",
  "body",
  "tellRule",
] as const;
const rateLimitNames = ["name", "unit", "requests_per_unit", "unlimited", "replaces"] as const;
const ownRateLimitNames = [
  "period",
  "burst",
  "algorithm",
  "time_zone",
  "charge",
  "peek",
  "overrideMax",
] as const;

type DescriptorName = (typeof descriptorNames)[number];
type OwnDescriptorName = (typeof ownDescriptorNames)[number];
type LimitName = (typeof rateLimitNames)[number];
type OwnLimitName = (typeof ownRateLimitNames)[number];

/** The shapes of one thing in both dialects. */
interface DialectShapes<Name extends string, Own extends string> {
  readonly ratelimit: Shape<Name>;
  readonly headgate: Shape<Name | Own>;
}

/** A descriptor. Source: envoyproxy/ratelimit, `YamlDescriptor` in src/config/config_impl.go. */
export const descriptorShapes: DialectShapes<DescriptorName, OwnDescriptorName> = {
  ratelimit: {
    title: "a descriptor",
    names: descriptorNames,
    blankNames: descriptorNames.filter((name) => name !== "key"),
    laterNames: [],
    ownNames: ownDescriptorNames,
  },
  headgate: {
    title: "a descriptor",
    names: [
      "key",
      "value",
      "rate_limit",
      "rate_limits",
      "on_store_failure",
      "shadow_mode",
      "quota_mode",
      "share_threshold",
      "headers",
      "body",
      "tellRule",
      "detailed_metric",
      "value_to_metric",
      "metadata",
      "descriptors",
    ],
    blankNames: ["value", "descriptors"],
    laterNames: [],
    ownNames: [],
  },
};

/** A limit. Source: envoyproxy/ratelimit, `YamlRateLimit` in src/config/config_impl.go. */
export const rateLimitShapes: DialectShapes<LimitName, OwnLimitName> = {
  ratelimit: {
    title: "a rate_limit",
    names: rateLimitNames,
    blankNames: rateLimitNames.filter((name) => name !== "unit"),
    laterNames: [],
    ownNames: ownRateLimitNames,
  },
  headgate: {
    title: "a rate_limit",
    names: [
      "name",
      "unit",
      "period",
      "requests_per_unit",
      "burst",
      "unlimited",
      "algorithm",
      "time_zone",
      "charge",
      "peek",
      "overrideMax",
      "replaces",
    ],
    blankNames: [],
    laterNames: [],
    ownNames: [],
  },
};

/** An item of `replaces`. Source: envoyproxy/ratelimit, `yamlReplaces`. */
export const replacesShape = plainShape("an item of replaces", ["name"]);

/** A file of envoyproxy/ratelimit; in a policy, one item of `rateLimits`. */
export const domainShapes: DialectShapes<
  "domain" | "descriptors",
  "on_store_failure" | "overrideMax" | "tellRule"
> = {
  ratelimit: {
    title: "a ratelimit file",
    names: ["domain", "descriptors"],
    blankNames: ["descriptors"],
    laterNames: [],
    ownNames: ["on_store_failure", "overrideMax", "tellRule"],
  },
  headgate: {
    title: "an item of rateLimits",
    names: ["domain", "on_store_failure", "overrideMax", "tellRule", "descriptors"],
    blankNames: ["descriptors"],
    laterNames: [],
    ownNames: [],
  },
};

/** The `apiVersion` of a policy file. */
export const policyApiVersion = "headgate.dev/v1alpha1";

/** The top of a `kind: Policy` file. */
export const policyShape = plainShape("a policy", ["apiVersion", "kind", "metadata", "spec"]);

/** `metadata` of a policy. */
export const metadataShape: Shape<"name" | "endMarker"> = {
  title: "metadata",
  names: ["name", "endMarker"],
  blankNames: [],
  laterNames: ["namespace", "labels", "annotations"],
  ownNames: [],
};

/** `spec` of a policy. */
export const specShape: Shape<"rateLimits" | "services" | "quotas" | "proxies"> = {
  title: "spec",
  names: ["rateLimits", "services", "quotas", "proxies"],
  blankNames: [],
  laterNames: [],
  ownNames: [],
};
