import {
  defaultAuthPaths,
  defaultBypassPaths,
  type Priority,
  parsePriority,
} from "../../core/admission/priority.js";
import { matchesPath, urlPathOf } from "../../core/base/path-pattern.js";
import type { PriorityOptions, ServerRequest } from "./server-options.js";

/** Returns the class of a request, or "bypass" if it is neither counted nor refused. */
export type ClassifyRequest = (request: ServerRequest) => Priority | "bypass";

/** Uses the policy language's order: bypass, own rules, a header that is trusted, logins. */
export function createRequestClassifier(options: PriorityOptions): ClassifyRequest {
  const { classify, header, trust, default: otherwise = "normal" } = options;
  const { bypassPaths = defaultBypassPaths, authPaths = defaultAuthPaths } = options;
  const name = header?.toLowerCase();
  const stated = (request: ServerRequest): Priority | undefined => {
    const text = name === undefined ? undefined : request.header(name);
    const priority = text === undefined ? undefined : parsePriority(text);
    return priority === undefined || trust?.(request) === false ? undefined : priority;
  };
  return (request) => {
    const urlPath = urlPathOf(request.path);
    if (matchesPath(bypassPaths, urlPath)) return "bypass";
    const priority = classify?.(request) ?? stated(request);
    if (priority !== undefined) return priority;
    return matchesPath(authPaths, urlPath) ? "critical" : otherwise;
  };
}
