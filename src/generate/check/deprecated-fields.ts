import { formatJsonPath, type ReportProblem } from "../base/check-problem.js";
import type { PlainValue } from "../base/plain-tree.js";
import type { EnvoyApi } from "./envoy-api.js";
import { readTree } from "./read-message.js";

/** A deprecated field of Envoy's API, and the first place that sets it. */
export interface DeprecatedField {
  /** One line that names the field and its message. */
  readonly what: string;
  readonly where: string;
}

/**
 * Returns the deprecated fields in Envoy's answer to `/config_dump`, each once: a dump repeats what
 * the bootstrap says. Other findings of a strict check do not matter to those who run Envoy.
 */
export function findDeprecated(dump: PlainValue, api: EnvoyApi): readonly DeprecatedField[] {
  const desc = api.message("envoy.admin.v3.ConfigDump");
  if (desc === undefined) return [];
  const found = new Map<string, DeprecatedField>();
  const report: ReportProblem = ({ id, message, path }) => {
    if (id !== "HG457" || found.has(message)) return;
    found.set(message, { what: message, where: formatJsonPath(path) });
  };
  readTree(desc, { value: dump, path: [] }, { api, report });
  return [...found.values()];
}
