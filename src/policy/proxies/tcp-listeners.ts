import type { ParsedNode } from "yaml";
import { quoteText } from "../problems/problem.js";
import { duration, readBy, ruledText, whole, words } from "../text/form.js";
import type { NodeReader } from "../text/node-reader.js";
import {
  field,
  inner,
  innerOrOff,
  items,
  object,
  type PlacedValue,
  placed,
  wordOr,
} from "../text/object.js";
import { portBounds } from "../text/quantities.js";
import { address, label } from "../text/service-texts.js";
import { domainRule, keyRule, valueRule } from "../text/text-rules.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";
import { upstreamTls, upstreamTlsOf } from "../upstream/client-tls.js";
import { fillBounds } from "../upstream/local-rate-limit.js";
import { tryTimeBounds } from "../upstream/retries.js";

/** Maximum number of TCP listeners of one policy. */
export const tcpListenersMax = 64;

/** Maximum number of descriptors of one TCP listener, and of entries of one descriptor. */
const descriptorsMax = 16;

/** Data of a connection: its source address, and fixed texts from the policy. */
export type ConnectionPart =
  | { readonly kind: "remoteAddress"; readonly key: string }
  | { readonly kind: "fixed"; readonly key: string; readonly value: string };

const fixedPart = object(
  { title: "a fixed part", docs: "The same text for each connection." },
  {
    value: field(ruledText(valueRule), "The text.", { needs: "a text" }),
    as: field(ruledText(keyRule), "The key of the entry.", { needs: "the key of the entry" }),
  },
  {
    data: ({ value = "", as: key = "" }): ConnectionPart => ({ kind: "fixed", key, value }),
  },
);

const partExpected = "remote_address, or {value: cache, as: listener}";
const partForm = wordOr(["remote_address"], inner(fixedPart), partExpected);

const part = readBy<ConnectionPart>(partForm, (reader, place) => {
  const read = partForm.read(reader, place);
  return read === "remote_address" ? { kind: "remoteAddress", key: read } : read;
});

const partsExpected = "a descriptor, such as [remote_address, {value: cache, as: listener}]";

const rateLimit = object(
  {
    title: "a TCP listener's rateLimit",
    docs: "Limits that each new connection is charged to.",
  },
  {
    domain: field(placed(ruledText(domainRule)), "A domain of `rateLimits`.", {
      needs: "a domain of rateLimits",
    }),
    descriptors: field(
      items(placed(items(part, { expected: partsExpected, max: descriptorsMax, min: 1 })), {
        expected: `a list of descriptors: [${partsExpected}]`,
        max: descriptorsMax,
        min: 1,
      }),
      "Descriptors of `remote_address` and fixed texts.",
      { needs: "a list of descriptors" },
    ),
  },
  {
    data: (read) => read,
    check(block, { descriptors }) {
      const expected = partsExpected;
      if (descriptors?.length === 0) {
        block.report("descriptors", { id: "HG160", message: "a list of 0 descriptors", expected });
      }
      for (const { value, node } of descriptors ?? []) {
        if (value.length > 0) continue;
        block.reader.report(node, { id: "HG160", message: "a descriptor of 0 parts", expected });
      }
    },
  },
);

const connectionRate = object(
  {
    title: "a connectionRate",
    docs: "New connections in each proxy.",
  },
  {
    connections: field(whole(thresholdBounds), "Connections allowed in each interval.", {
      larger: "looser",
      needs: "connections allowed in each interval",
    }),
    per: field(duration(fillBounds), "The length of an interval.", {
      larger: "stricter",
      as: "perMs",
      default: 1_000,
    }),
    burst: field(
      whole(thresholdBounds),
      "Connections that may arrive at once. Default: `connections`.",
      { larger: "looser" },
    ),
  },
  {
    data: ({ connections = 1, perMs, burst = connections }) => ({ connections, perMs, burst }),
    check(block, { connections, burst }) {
      if (burst >= connections) return;
      const message = `burst is ${burst}, and each interval adds ${connections} connections`;
      block.refuseOrder(["burst"], message, "at least connections");
    },
  },
);

const upstream = object(
  { title: "a TCP upstream", docs: "Where connections go." },
  {
    address: field(address, "A host name or an IP address.", {
      needs: "a host name or IP address",
    }),
    port: field(whole(portBounds), "The port.", {
      larger: "different",
      needs: "a port, 1 to 65535",
    }),
    tls: field(innerOrOff(upstreamTls), "TLS to it. Default: off."),
  },
  {
    data({ address: place, port, tls = "off" }) {
      if (place === undefined || port === undefined) return undefined;
      const at = { address: place, port };
      return { ...at, tls: upstreamTlsOf(tls, at) };
    },
  },
);

/** A listener as written. The finished policy contains no places. */
const tcpListener = object(
  {
    title: "a TCP listener",
    docs: "A listener for a service that speaks TCP or Redis.",
  },
  {
    name: field(
      placed(label),
      "The name in statistics: `tcp_NAME`. In Envoy Gateway: the listener.",
      {
        needs: "the listener's name",
      },
    ),
    port: field(whole(portBounds), "The port of the listener. In Istio: of the gateway's server.", {
      larger: "different",
      needs: "the port of the listener",
    }),
    protocol: field(words("tcp", "redis"), "`redis` spreads keys over the hosts.", {
      default: "tcp",
    }),
    upstream: field(inner(upstream), "Where the connections go.", {
      needs: "upstream: {address, port}",
    }),
    maxConnections: field(whole(thresholdBounds), "Maximum open connections of one proxy.", {
      larger: "looser",
      as: "connectionsMax",
      default: 1_000,
    }),
    connectionRate: field(inner(connectionRate), "A limit of new connections. Default: none.", {
      added: "stricter",
    }),
    rateLimit: field(inner(rateLimit), "Limits over all proxies. Default: none.", {
      added: "stricter",
    }),
    connectTimeout: field(duration(tryTimeBounds), "The timeout of a connection upstream.", {
      larger: "different",
      as: "connectMs",
      default: 250,
    }),
    idleTimeout: field(
      duration(tryTimeBounds),
      "How long a connection may be silent. Default: an hour; redis: no limit.",
      { larger: "different", as: "idleMs" },
    ),
  },
);

type ReadTcpListener = typeof tcpListener.defaults;

/** The descriptors that a new connection is charged by. */
interface ConnectionLimit {
  readonly domain: string;
  readonly descriptors: readonly (readonly ConnectionPart[])[];
}

/** A listener of edge proxies that is not HTTP. Plain data. */
export interface TcpListenerPolicy
  extends Omit<ReadTcpListener, "name" | "port" | "upstream" | "rateLimit"> {
  readonly name: string;
  readonly port: number;
  readonly upstream: NonNullable<ReadTcpListener["upstream"]>;
  readonly rateLimit: ConnectionLimit | undefined;
}

/** A reference to a domain for a listener's descriptors, with its places. */
export interface ConnectionLimitClaim {
  readonly reader: NodeReader;
  readonly domain: string;
  readonly domainNode: ParsedNode;
  readonly inExtProc: false;
  readonly descriptors: readonly {
    readonly parts: readonly ConnectionPart[];
    readonly node: ParsedNode;
  }[];
}

/** A TCP listener with its reference; undefined if it is wrong. */
interface ClaimingListener {
  readonly listener: TcpListenerPolicy;
  readonly claim: ConnectionLimitClaim | undefined;
  readonly node: PlacedValue<string>["node"];
}

const listenerForm = inner(tcpListener, "a map: {name, port, upstream: {address, port}}");

const listenerItem = readBy<ClaimingListener>(listenerForm, (reader, place) => {
  const read = listenerForm.read(reader, place);
  const { name, port, upstream: target } = read ?? {};
  if (read === undefined || name === undefined || port === undefined) return undefined;
  if (target === undefined) return undefined;
  const { rateLimit: limit, ...rest } = read;
  const asked = limitOf(limit);
  const listener = { ...rest, name: name.value, port, upstream: target, rateLimit: asked };
  return { listener, claim: claimOf(limit, reader), node: name.node };
});

const listenerList = items(listenerItem, {
  expected: "a list of listeners: {name, port, upstream}",
  max: tcpListenersMax,
});

/** `tcpListeners` of `proxies`. */
export const tcpListeners = readBy(listenerList, (reader, place) => {
  const read = listenerList.read(reader, place);
  const names = new Set<string>();
  for (const { listener, node } of read ?? []) {
    if (names.has(listener.name)) {
      const message = `another TCP listener is named ${quoteText(listener.name)}`;
      reader.report(node, { id: "HG240", message, expected: "a name of its own" });
    }
    names.add(listener.name);
  }
  return read;
});

function limitOf(read: ReadTcpListener["rateLimit"]): ConnectionLimit | undefined {
  const { domain, descriptors = [] } = read ?? {};
  return domain && { domain: domain.value, descriptors: descriptors.map(({ value }) => value) };
}

function claimOf(
  limit: ReadTcpListener["rateLimit"],
  reader: NodeReader,
): ConnectionLimitClaim | undefined {
  if (limit?.domain === undefined) return undefined;
  const { value: domain, node: domainNode } = limit.domain;
  const descriptors = (limit.descriptors ?? []).map(({ value: parts, node }) => ({ parts, node }));
  return { reader, domain, domainNode, inExtProc: false, descriptors };
}
