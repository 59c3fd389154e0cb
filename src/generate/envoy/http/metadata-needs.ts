import { quoteText } from "../../../policy/problems/problem.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../../policy/services/service-rate-limit.js";
import type { TargetProblem } from "../../base/generator.js";

/** Which filters may set the metadata that limits are keyed by. */
export interface MetadataPlace {
  /** There can be no such filter, so a limit that needs one would never apply. */
  readonly isClosed: boolean;
  /** As the subject of "sets the metadata". */
  readonly who: string;
  readonly hint: string;
  readonly report: (problem: TargetProblem) => void;
}

/**
 * Reports limits by metadata that none of our filters sets: Headgate's filter only sets its own.
 * Without the metadata, a descriptor is left out, or its cost is never reported.
 */
export function reportMetadata({ name, rateLimit }: ServicePolicy, place: MetadataPlace): void {
  const { isClosed, who, hint, report } = place;
  for (const descriptor of rateLimit?.descriptors ?? []) {
    for (const { namespace, effect, isLost } of needsOf(descriptor)) {
      if (namespace === "headgate") continue;
      report({
        id: "HG306",
        spot: { service: name, path: ["rateLimit", "descriptors"] },
        message: `${who} sets the metadata ${quoteText(namespace)}: ${effect}`,
        hint,
        severity: isClosed && isLost ? "error" : "warning",
      });
    }
  }
}

interface MetadataNeed {
  readonly namespace: string;
  readonly effect: string;
  /** Whether the limit has no effect without it. */
  readonly isLost: boolean;
}

function needsOf({ parts, hits }: ServiceDescriptor): readonly MetadataNeed[] {
  const named = parts.flatMap((part): MetadataNeed[] => {
    if (part.kind !== "metadata") return [];
    const isLost = part.fallback === undefined;
    const effect = isLost ? "the limit would never apply" : "all requests get the default";
    return [{ namespace: part.namespace, effect, isLost }];
  });
  const [, namespace] = hits.kind === "format" ? (metadataFormat.exec(hits.format) ?? []) : [];
  if (namespace === undefined) return named;
  return [
    ...named,
    { namespace, effect: "the cost of requests would not be reported", isLost: true },
  ];
}

/** Source: Envoy, "Access logging", `%DYNAMIC_METADATA(NAMESPACE:KEY*):Z%`. */
const metadataFormat = /%DYNAMIC_METADATA\(([^:()]+)/;
