import type { DescriptorEntry } from "../../core/limits/key.js";
import { quotaBucketKey, quotaClassKey } from "../../core/quota/quota.js";
import type { QuotaPolicy } from "./quota-policy.js";

/** Meaning of a bucket for the limits of its domain. */
interface QuotaBucket {
  /** Its descriptor: the parts in the order of the policy. */
  readonly entries: readonly DescriptorEntry[];
  /** Weight of its class; 1 if it has none. */
  readonly weight: number;
}

/** Result of reading a bucket id. */
type ReadQuotaBucket =
  | { readonly kind: "bucket"; readonly bucket: QuotaBucket }
  /** The quota's filter does not create it: the Envoy has an older policy, or another one. */
  | { readonly kind: "foreign" };

/**
 * Reads a bucket id of a quota, as an Envoy reports it: a map, whose order has no meaning.
 *
 * Example: of `bucket: [{header: x-tenant, as: tenant}]`, `{quota: search, class: gold, tenant: a}`
 * is the descriptor `[tenant=a]` with the weight of gold.
 */
export function readQuotaBucket(
  { name, bucket, classes }: QuotaPolicy,
  id: Readonly<Record<string, string>>,
): ReadQuotaBucket {
  let isForeign = false;
  // `push` would allocate room for 17 entries, which live as long as the bucket.
  const entries = bucket.map((part): DescriptorEntry => {
    const value = Object.hasOwn(id, part.key) ? id[part.key] : undefined;
    if (value === undefined || (part.kind === "fixed" && value !== part.value)) isForeign = true;
    return { key: part.key, value: value ?? "" };
  });
  if (isForeign) return foreign;
  const hasClass = Object.hasOwn(id, quotaClassKey);
  const className = id[quotaClassKey] ?? "";
  const isKnown = classes !== undefined && Object.hasOwn(classes.weights, className);
  if (hasClass && !isKnown) return foreign;
  const entryCount = entries.length + (hasClass ? 2 : 1);
  if (id[quotaBucketKey] !== name || Object.keys(id).length !== entryCount) return foreign;
  const weight = hasClass ? (classes?.weights[className] ?? 1) : 1;
  return { kind: "bucket", bucket: { entries, weight } };
}

const foreign: ReadQuotaBucket = { kind: "foreign" };
