import { type CheckProblem, formatJsonPath } from "../base/check-problem.js";
import type { Document } from "../base/document.js";
import { formatMinorVersion, isAtLeastVersion } from "../base/generate-options.js";
import { rated } from "../base/generate-problems.js";
import type { GenerateOptions, GenerateProblem, MinorVersion } from "../base/generator.js";
import type { DocumentCheck } from "../generate.js";
import { checkMessage } from "./check-message.js";
import { clusterLints } from "./cluster-lints.js";
import type { EnvoyApi } from "./envoy-api.js";
import { type EnvoyMessage, visitMessages } from "./envoy-message.js";
import { filterLints } from "./filter-lints.js";
import { findMessages } from "./find-messages.js";
import { type Lint, runLints } from "./lint.js";
import { overloadLints } from "./overload-lints.js";
import { quotaLints } from "./quota-lints.js";

/**
 * Checks everything in documents that Envoy will read, including patches in Kubernetes objects.
 * Reports only errors, which no policy can intend. The policy's own lints cover the rest.
 */
export function envoyCheck(api: EnvoyApi): DocumentCheck {
  return (documents, options) =>
    documents.flatMap((document) => {
      const found = checkDocument(document, { api, options });
      const errors = found.filter(({ severity }) => severity === "error");
      return errors.map((problem) => inDocument(document.path, problem));
    });
}

/** What documents are checked against. */
interface Against {
  readonly api: EnvoyApi;
  /** Undefined: the version that the API is from. */
  readonly options?: Pick<GenerateOptions, "envoyVersion">;
}

/** Returns all errors and warnings of one document. */
export function checkDocument(
  document: Document,
  { api, options }: Against,
): readonly CheckProblem[] {
  const { trees, problems } = findMessages(document, api);
  const { kind } = document;
  // Meshes and gateways have their own versions, which include an Envoy.
  const isOwn = kind.format === "yaml" && kind.is === "envoy";
  const found = trees.flatMap((tree) => {
    const { message, problems: broken } = checkMessage(tree, api);
    if (message === undefined) return broken;
    const young = isOwn && options !== undefined ? checkVersion(message, options.envoyVersion) : [];
    return [...broken, ...runLints(message, allLints), ...young];
  });
  return [...problems, ...found];
}

function inDocument(file: string, problem: CheckProblem): GenerateProblem {
  const { id, path, message, hint, severity } = problem;
  return {
    id,
    spot: { service: undefined, path: [] },
    message: `${file}: ${formatJsonPath(path)}: ${message}`,
    hint,
    severity,
  };
}

/** All lints of Envoy's configuration: mistakes that Envoy accepts, or only refuses late. */
export const allLints: readonly Lint[] = [
  ...clusterLints,
  ...filterLints,
  ...overloadLints,
  ...quotaLints,
];

const http = "envoy.extensions.filters.http";
const gradient = `${http}.adaptive_concurrency.v3.GradientControllerConfig`;
const monitors = "envoy.extensions.resource_monitors";

/**
 * Parts of the API that we generate and that are younger than the oldest supported Envoy, with the
 * first minor version of 1 that surely has them. A name with `#` is a field, others are messages.
 *
 * Source: Envoy's API by release, in go-control-plane's tags v0.12.0 (early 2024), v0.13.1,
 * envoy/v1.32.4 and envoy/v1.35.0 to envoy/v1.40.0. If a release between two may have a part
 * already, the later one is listed.
 */
const sinceMinor: Readonly<Record<string, number>> = {
  // In v0.13.1 and not in v0.12.0; in the release notes of 1.31.0, and not in those of 1.30.0.
  [`${http}.ext_proc.v3.ExternalProcessor#route_cache_action`]: 31,
  // In envoy/v1.32.4, which is younger than 1.32.0, and not in v0.13.1.
  "envoy.config.route.v3.RateLimit#apply_on_stream_done": 33,
  "envoy.config.route.v3.RateLimit#hits_addend": 33,
  "envoy.config.route.v3.RateLimit.Action#query_parameters": 33,
  [`${monitors}.cpu_utilization.v3.CpuUtilizationConfig#mode`]: 33,
  // In envoy/v1.35.0, and not in envoy/v1.32.4.
  [`${gradient}.MinimumRTTCalculationParams#fixed_value`]: 35,
  [`${http}.ratelimit.v3.RateLimit#filter_enabled`]: 35,
  [`${http}.ratelimit.v3.RateLimit#filter_enforced`]: 35,
  [`${monitors}.cgroup_memory.v3.CgroupMemoryConfig`]: 35,
  // In envoy/v1.36.0, and not in envoy/v1.35.0.
  [`${http}.ext_proc.v3.ExternalProcessor#status_on_error`]: 36,
  // In envoy/v1.38.0, and not in envoy/v1.37.0.
  "envoy.config.route.v3.RateLimit.HitsAddend#is_negative_hits": 38,
  // In envoy/v1.40.0, and not in envoy/v1.39.0.
  [`${gradient}.ConcurrencyLimitCalculationParams#min_concurrency_limit`]: 40,
  [`${http}.local_ratelimit.v3.LocalRateLimit#enable_retry_after_header`]: 40,
  [`${http}.ratelimit.v3.RateLimit#enable_retry_after_header`]: 40,
};

/** Messages that are listed above, or that have a field listed there. */
const youngMessages: ReadonlySet<string> = new Set(
  Object.keys(sinceMinor).map((name) => name.replace(/#.*/, "")),
);

/** Reports everything in a message that the given version of Envoy does not have yet. */
export function checkVersion(root: EnvoyMessage, version: MinorVersion): readonly CheckProblem[] {
  const problems: CheckProblem[] = [];
  visitMessages(root, ({ desc, path, fields }) => {
    if (!youngMessages.has(desc.typeName)) return;
    const names = [
      desc.typeName,
      ...Array.from(fields.keys(), (name) => `${desc.typeName}#${name}`),
    ];
    for (const name of names) {
      const minor = Object.hasOwn(sinceMinor, name) ? sinceMinor[name] : undefined;
      if (minor === undefined || isAtLeastVersion(version, { major: 1, minor })) continue;
      problems.push(
        rated({
          id: "HG454",
          path,
          message: `${name.replace("#", ".")} is not in Envoy ${formatMinorVersion(version)}`,
          hint: `generate for 1.${minor} or later`,
        }),
      );
    }
  });
  return problems;
}
