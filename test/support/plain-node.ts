import type { Node } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { type NodeIdentity, nodeIdCharsMax } from "../../src/rpc/nodes/node-identity.js";

/** What a node says of itself, by the library's message. */
export function plainNode(node: Node): NodeIdentity {
  const { id, cluster, userAgentName: agent, userAgentVersionType: said } = node;
  const build = said.case === "userAgentBuildVersion" ? said.value.version : undefined;
  const { majorNumber, minorNumber, patch } = build ?? {};
  const built = build === undefined ? "" : `${majorNumber}.${minorNumber}.${patch}`;
  const version = said.case === "userAgentVersion" ? said.value : built;
  const cut = (text: string): string => text.slice(0, nodeIdCharsMax);
  return { id, cluster: cut(cluster), agent: cut(agent), version: cut(version) };
}
