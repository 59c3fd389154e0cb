import type { TcpListenerPolicy } from "../../../policy/proxies/tcp-listeners.js";
import type { EnvoyContext } from "./context.js";
import { type OptionSupportRow, type OtherTarget, reportOption } from "./option-support.js";

const ownUpstream = {
  why: "Headgate does not generate what its TCP routes lead to",
  instead: "leave it out, and set it on the objects of that service",
} as const;

const plainTcp = {
  why: "its gateways copy bytes, and do not read commands of Redis",
  instead: "leave protocol out: connections are limited all the same",
} as const;

const openConnections = {
  why: "it limits open connections only",
  instead: "leave it out: maxConnections limits open connections",
} as const;

/** An option of a TCP listener. For other targets, the user's own objects define the listener. */
interface TcpOptionRow extends Omit<OptionSupportRow, "isSaid"> {
  /** Reports whether a listener sets it, as for services. Undefined: every listener sets it. */
  readonly isSaid?: (listener: TcpListenerPolicy) => boolean;
}

/** Options of a TCP listener. Other targets find the gateway's listener by its port. */
export const tcpOptionRows: Readonly<Record<string, TcpOptionRow>> = {
  protocol: {
    envoy: "`tcp_proxy`, `redis_proxy`",
    istio: plainTcp,
    gateway: plainTcp,
    isSaid: ({ protocol }) => protocol !== "tcp",
  },
  maxConnections: {
    envoy: "`connection_limit`",
    istio: { by: "EnvoyFilter" },
    gateway: { by: "ClientTrafficPolicy", field: "connection.connectionLimit" },
  },
  connectionRate: {
    envoy: "`local_ratelimit`",
    istio: { by: "EnvoyFilter" },
    gateway: openConnections,
    isSaid: ({ connectionRate }) => connectionRate !== undefined,
  },
  rateLimit: {
    envoy: "`ratelimit`",
    istio: { by: "EnvoyFilter" },
    gateway: openConnections,
    isSaid: ({ rateLimit }) => rateLimit !== undefined,
  },
  idleTimeout: {
    envoy: "`idle_timeout`",
    istio: ownUpstream,
    gateway: { by: "ClientTrafficPolicy", field: "timeout.tcp.idleTimeout" },
    isSaid: ({ idleMs }) => idleMs !== undefined,
  },
  "upstream.tls": {
    envoy: "`transport_socket`",
    istio: ownUpstream,
    gateway: ownUpstream,
    isSaid: ({ upstream }) => upstream.tls !== undefined,
  },
};

/** Reports options of TCP listeners that a target does not support. */
export function reportTcpOptions(target: OtherTarget, context: EnvoyContext): void {
  for (const [i, listener] of context.policy.proxies.tcpListeners.entries()) {
    for (const [name, row] of Object.entries(tcpOptionRows)) {
      if (row.isSaid?.(listener) !== true) continue;
      const spot = {
        service: undefined,
        path: ["proxies", "tcpListeners", String(i), ...name.split(".")],
      };
      const option = `proxies.tcpListeners.${name}`;
      reportOption({ target, option, spot, support: row[target] }, context);
    }
  }
}
