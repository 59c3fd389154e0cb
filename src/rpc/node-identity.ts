import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";

/** Who an Envoy says it is. All of it was made elsewhere: it reaches no label and no log. */
export interface NodeIdentity {
  /** Its own name, unique in the fleet; empty where it has none. */
  readonly id: string;
  /** The group that it says it belongs to. */
  readonly cluster: string;
  /** The program: `envoy`. */
  readonly agent: string;
  /** As `1.40.0`, or a text of the program's own; empty where it says none. */
  readonly version: string;
}

/** The longest name of a node, in characters; other texts are cut to it. */
export const nodeIdCharsMax = 256;

/** The line of Envoy whose behaviour this port was made for. */
const envoyLine = /^1\.40(?:\.|$)/;

/** Reads what is needed of a node. Source: envoy.config.core.v3.Node. */
export function nodeIdentity(node: Node): NodeIdentity {
  const { id, cluster, userAgentName: agent } = node;
  const version = versionOf(node).slice(0, nodeIdCharsMax);
  const cut = { cluster: cluster.slice(0, nodeIdCharsMax), agent: agent.slice(0, nodeIdCharsMax) };
  return { id, ...cut, version };
}

function versionOf({ userAgentVersionType: said }: Node): string {
  if (said.case === "userAgentVersion") return said.value;
  const build = said.case === "userAgentBuildVersion" ? said.value.version : undefined;
  if (build === undefined) return "";
  return `${build.majorNumber}.${build.minorNumber}.${build.patch}`;
}

/** Whether it is an Envoy of the line that this port was made for. */
export function isKnownVersion({ agent, version }: NodeIdentity): boolean {
  return agent === "envoy" && envoyLine.test(version);
}
