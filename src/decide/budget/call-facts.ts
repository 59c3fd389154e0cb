import { urlPathOf } from "../../core/base/path-pattern.js";
import type { CallFacts, Usage } from "../../core/budgets/usage.js";
import {
  cutModel,
  parseCount,
  usageFromHeaders,
  usageFromMetadata,
} from "../../core/usage/usage-fields.js";
import type { ModelSource, ServiceUsage, UsageSource } from "../../policy/budgets/budget-policy.js";
import { pathHeader } from "../../policy/cel/request-facts.js";
import type { BudgetedRequest, ReportingResponse } from "./budget-call.js";

/** Returns facts about a call from the request's headers, and from its body if it was read. */
export function callFactsOf(
  { model: source, declaredMax }: Pick<ServiceUsage, "model" | "declaredMax">,
  { headers, facts: read }: Pick<BudgetedRequest, "headers" | "facts">,
): CallFacts {
  const model = modelOf(source, headers, read);
  const outputTokensMax =
    declaredMax?.kind === "header"
      ? countIn(headers.get(declaredMax.header))
      : declaredMax && read?.outputTokensMax;
  const requestBytes = read?.requestBytes ?? countIn(headers.get("content-length"));
  return {
    model,
    ...(outputTokensMax === undefined ? {} : { outputTokensMax }),
    ...(requestBytes === undefined ? {} : { requestBytes }),
  };
}

function modelOf(
  source: ModelSource,
  headers: ReadonlyMap<string, string>,
  read: CallFacts | undefined,
): string {
  switch (source.kind) {
    case "fixed":
      return source.model;
    case "body":
      return read?.model ?? "";
    case "header":
      return cutModel(headers.get(source.header) ?? "");
    case "path":
      return cutModel(modelInPath(urlPathOf(headers.get(pathHeader) ?? ""), source.after));
  }
}

/** Example: `/v1beta/models/gemini-pro:streamGenerateContent` after `models` is `gemini-pro`. */
function modelInPath(path: string, after: string): string {
  const segments = path.split("/");
  const place = segments.indexOf(after);
  const [model = ""] = (place === -1 ? "" : (segments[place + 1] ?? "")).split(":", 1);
  try {
    return decodeURIComponent(model);
  } catch {
    // Invalid escapes: the model is used as written.
    return model;
  }
}

/**
 * Returns the usage that headers, trailers or metadata of other filters report, and the size that
 * headers declare. Undefined: none.
 */
export function reportedUsage(source: UsageSource, facts: ReportingResponse): Usage | undefined {
  const responseBytes = countIn(facts.headers?.get("content-length"));
  const usage = usageIn(source, facts);
  return responseBytes === undefined ? usage : { responseBytes, ...usage };
}

function usageIn(source: UsageSource, { headers, metadata }: ReportingResponse): Usage | undefined {
  if (source.kind === "headers") return headers && usageFromHeaders(source.fields, headers);
  if (source.kind !== "metadata") return undefined;
  const values = metadata?.get(source.namespace);
  return values && usageFromMetadata(source.fields, values);
}

function countIn(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseCount(text);
}

/** Adds the parts of responses that a service's usage needs. */
export function addUsageNeeds(
  { source }: ServiceUsage,
  needs: {
    readonly responseHeaders: Set<string>;
    readonly metadataPaths: Map<string, Set<string>>;
  },
): void {
  const { responseHeaders, metadataPaths } = needs;
  responseHeaders.add("content-length");
  if (source.kind === "headers") {
    for (const name of Object.values(source.fields)) responseHeaders.add(name);
  } else if (source.kind === "metadata") {
    const paths = metadataPaths.get(source.namespace) ?? new Set();
    metadataPaths.set(source.namespace, paths);
    for (const path of Object.values(source.fields)) paths.add(path.join("."));
  }
}
