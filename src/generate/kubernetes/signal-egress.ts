import type { Tree } from "../base/document.js";

/** Returns an egress rule that lets the pods reach the source of a signal. */
export function signalEgress(url: string): Tree {
  const { hostname, port, protocol } = new URL(url);
  const namespace = namespaceInHost(hostname);
  // Rules apply to pods' ports, which a Service's port may not equal, so all ports are allowed.
  if (namespace !== undefined) return { to: [inNamespace(namespace)] };
  // A name without a dot is a Service in our own namespace.
  if (!hostname.includes(".") && !hostname.startsWith("[")) return { to: [{ podSelector: {} }] };
  const number = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  const to = blocksOf(hostname).map((cidr) => ({ ipBlock: { cidr } }));
  return { to, ports: [{ port: number, protocol: "TCP" }] };
}

/** Returns the namespace in a Service's name: `prometheus.monitoring.svc.cluster.local`. */
export function namespaceInHost(host: string): string | undefined {
  return /^(?:[^.]+\.)+([^.]+)\.svc(?:\.|$)/.exec(host)?.[1];
}

function inNamespace(name: string): Tree {
  return { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } };
}

/** Rules do not support host names, so all addresses to which one may resolve are allowed. */
function blocksOf(hostname: string): readonly string[] {
  if (/^[0-9.]+$/.test(hostname)) return [`${hostname}/32`];
  if (hostname.startsWith("[")) return [`${hostname.slice(1, -1)}/128`];
  return ["0.0.0.0/0", "::/0"];
}
