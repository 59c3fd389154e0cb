import { formatJsonPath, type ReportProblem } from "../base/check-problem.js";
import type { PlainValue } from "../base/plain-tree.js";
import type { EnvoyApi } from "./envoy-api.js";
import { readTree } from "./read-message.js";

/** A field that Envoy's API gives up, and where it is set first. */
export interface DeprecatedField {
  /** One line, which names the field and its message. */
  readonly what: string;
  readonly where: string;
}

/**
 * The deprecated fields of what Envoy answers to `/config_dump`, each once: a dump has what a
 * bootstrap says twice. What else a strict look would find in it is no matter of who runs it.
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
