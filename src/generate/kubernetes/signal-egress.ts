import type { Tree } from "../base/document.js";

/** A rule that lets the pods reach a source of readings. */
export function signalEgress(url: string): Tree {
  const { hostname, port, protocol } = new URL(url);
  const namespace = namespaceInHost(hostname);
  // A Service's port is not its pods' own, which rules are about, so all of them are let through.
  if (namespace !== undefined) return { to: [inNamespace(namespace)] };
  // A name without a dot is a Service of our own namespace.
  if (!hostname.includes(".") && !hostname.startsWith("[")) return { to: [{ podSelector: {} }] };
  const number = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  const to = blocksOf(hostname).map((cidr) => ({ ipBlock: { cidr } }));
  return { to, ports: [{ port: number, protocol: "TCP" }] };
}

/** The namespace in the name of a Service: `prometheus.monitoring.svc.cluster.local`. */
export function namespaceInHost(host: string): string | undefined {
  return /^(?:[^.]+\.)+([^.]+)\.svc(?:\.|$)/.exec(host)?.[1];
}

function inNamespace(name: string): Tree {
  return { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } };
}

/** Rules know no names of hosts: whatever one may resolve to. */
function blocksOf(hostname: string): readonly string[] {
  if (/^[0-9.]+$/.test(hostname)) return [`${hostname}/32`];
  if (hostname.startsWith("[")) return [`${hostname.slice(1, -1)}/128`];
  return ["0.0.0.0/0", "::/0"];
}
