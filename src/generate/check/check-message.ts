import { quoteText } from "../../policy/problems/problem.js";
import type { CheckProblem, JsonPath, ReportProblem } from "../base/check-problem.js";
import { rated } from "../base/generate-problems.js";
import type { PlainValue } from "../base/plain-tree.js";
import type { EnvoyApi } from "./envoy-api.js";
import type { EnvoyMessage } from "./envoy-message.js";
import { checkRules } from "./field-rules.js";
import { readTree } from "./read-message.js";

/** A tree to be read as an Envoy message. */
export interface EnvoyTree {
  /** Full name, such as `envoy.config.cluster.v3.Cluster`. */
  readonly message: string;
  readonly value: PlainValue;
  /** The tree's path in its document. */
  readonly path: JsonPath;
  /** Whether it is merged into another tree, which may hold what is missing here. Default false. */
  readonly isPartial?: boolean;
}

/** A tree with the message that was read, and its problems. */
interface CheckedTree {
  readonly tree: EnvoyTree;
  /** The parts that could be read. Undefined if there is no such message. */
  readonly message: EnvoyMessage | undefined;
  readonly problems: readonly CheckProblem[];
}

/** Reads a tree strictly, and checks it against the rules of Envoy's API. */
export function checkMessage(tree: EnvoyTree, api: EnvoyApi): CheckedTree {
  const problems: CheckProblem[] = [];
  const report: ReportProblem = (problem) => void problems.push(rated(problem));
  const desc = api.message(tree.message);
  const { value, path, isPartial = false } = tree;
  if (desc === undefined) {
    const message = `${quoteText(tree.message)} is not a message of Envoy's API`;
    const hint = "write the full name of one of its messages";
    report({ id: "HG450", path, message, hint });
    return { tree, message: undefined, problems };
  }
  const message = readTree(desc, { value, path }, { api, report });
  if (message !== undefined) checkRules(message, { api, report, isPartial });
  return { tree, message, problems };
}
