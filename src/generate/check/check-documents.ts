import { type CheckProblem, formatJsonPath } from "../base/check-problem.js";
import type { Document } from "../base/document.js";
import type { GenerateOptions, GenerateProblem } from "../base/generator.js";
import type { DocumentCheck } from "../generate.js";
import { allLints } from "./all-lints.js";
import { checkMessage } from "./check-message.js";
import type { EnvoyApi } from "./envoy-api.js";
import { checkVersion } from "./envoy-versions.js";
import { findMessages } from "./find-messages.js";
import { runLints } from "./lint.js";

/**
 * Checks all that Envoy will read in documents, patches in objects of Kubernetes included. Of the
 * lints only those that no policy can mean; the others are held against the policy itself.
 */
export function envoyCheck(api: EnvoyApi): DocumentCheck {
  return (documents, options) =>
    documents.flatMap((document) => {
      const found = checkDocument(document, { api, options });
      const errors = found.filter(({ severity }) => severity === "error");
      return errors.map((problem) => inDocument(document.path, problem));
    });
}

/** What documents are held against. */
interface Against {
  readonly api: EnvoyApi;
  /** Undefined: the version whose API it is. */
  readonly options?: Pick<GenerateOptions, "envoyVersion">;
}

/** All that is wrong, or doubtful, in one document. */
export function checkDocument(
  document: Document,
  { api, options }: Against,
): readonly CheckProblem[] {
  const { trees, problems } = findMessages(document, api);
  const { kind } = document;
  // Meshes and gateways have versions of their own, which bring an Envoy's.
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
