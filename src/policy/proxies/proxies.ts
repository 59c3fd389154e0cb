import type { ParsedNode } from "yaml";
import { visibleText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import type { DurationBounds } from "../text/quantities.js";
import { portBounds } from "../text/quantities.js";
import {
  readAddress,
  readFilePath,
  readHostPattern,
  readLabel,
  readPodLabels,
  readUrl,
} from "../text/service-texts.js";
import { readAdaptiveConcurrency } from "../upstream/adaptive-concurrency.js";
import { readAdmissionControl } from "../upstream/admission-control.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";
import { readClientTls } from "../upstream/client-tls.js";
import { tryTimeBounds } from "../upstream/retries.js";
import { readListenerTls } from "./listener-tls.js";
import { readOverload } from "./proxy-overload.js";
import {
  defaultProxies,
  type EscapedSlashesAction,
  type GatewayListener,
  type GatewayPolicy,
  type HeadgatePlace,
  type Http3Policy,
  type ListenerPolicy,
  type ProxyPolicy,
} from "./proxy-policy.js";
import {
  clientTlsShape,
  gatewayListenerShape,
  gatewayShape,
  headgatePlaceShape,
  http3Shape,
  listenerShape,
  proxiesShape,
} from "./proxy-shapes.js";

/** Proxies that share a fleet's limit. */
const expectedProxiesMax = 1_000_000;

/** The bounds of `expected`. */
export const expectedBounds = { min: 1, max: expectedProxiesMax } as const;

/** Proxies of ours before one of ours. */
const trustedHopsMax = 100;

/** Listeners of a Gateway. Source: Gateway API, GatewaySpec. */
export const gatewayListenersMax = 64;

/** The bounds of `trustedHops`. */
export const hopBounds = { min: 0, max: trustedHopsMax } as const;

/** The longest that a request may wait for a rate limit's answer, in milliseconds. */
export const rateLimitTimeoutMsMax = 60_000;

/** The bounds of `rateLimitTimeout`. */
export const rateLimitTimeoutBounds: DurationBounds = { minMs: 1, maxMs: rateLimitTimeoutMsMax };

/** The most streams of a connection. Source: envoy.config.core.v3.Http2ProtocolOptions. */
const streamsMax = 2_147_483_647;

/** The bounds of `maxRequestHeadersKb`. Source: HttpConnectionManager. */
export const headersKibBounds = { min: 1, max: 8_192 } as const;

/** The bounds of `maxConcurrentStreams`. */
export const streamBounds = { min: 1, max: streamsMax } as const;

/** What is left out is as usual. */
function readProxies(block: Block): ProxyPolicy {
  const usual = defaultProxies;
  const folderField = block.field("secretsFolder");
  return {
    expectedCount: block.whole("expected", usual.expectedCount, expectedBounds),
    headgate: readHeadgate(block),
    listener: readListener(block),
    gateway: readGateway(block),
    overload: readOverload(block),
    adaptiveConcurrency: readAdaptiveConcurrency(block, undefined),
    admissionControl: readAdmissionControl(block, undefined),
    runbookUrl: readRunbookUrl(block),
    secretsFolder: folderField && readFilePath(block.reader, folderField),
  };
}

/** Alerts add the name of a section, and Prometheus fills in what stands in braces. */
function readRunbookUrl(block: Block): string | undefined {
  const field = block.field("runbookUrl");
  const url = field && readUrl(block.reader, field);
  if (field === undefined || url === undefined || !/[#{}]/.test(url)) return url;
  const message = "the URL of a runbook has neither a fragment nor braces";
  return block.reader.report(field.key, { id: "HG227", message });
}

/** `proxies` as one file of a policy says it: a second one is refused. */
export class ProxiesOnce {
  #policy: ProxyPolicy = defaultProxies;
  #place: string | undefined;

  /** What is said, or what is usual. */
  get policy(): ProxyPolicy {
    return this.#policy;
  }

  /** Reads the field of a file. */
  read(reader: NodeReader, field: Field): void {
    const expected = `${proxiesShape.title}; {} for what is usual`;
    const node = reader.required(field, expected);
    const block = node && Block.at(reader, node, proxiesShape);
    const policy = block && readProxies(block);
    if (this.#place !== undefined) {
      const message = `"proxies" stands already in ${this.#place}`;
      reader.report(field.key, { id: "HG249", message });
      return;
    }
    const { line } = reader.source.position(field.key.range[0]);
    this.#place = `${visibleText(reader.source.file)}:${line}`;
    if (policy !== undefined) this.#policy = policy;
  }
}

function readHeadgate(proxies: Block): HeadgatePlace {
  const block = proxies.block("headgate", headgatePlaceShape);
  const usual = defaultProxies.headgate;
  if (block === undefined) return usual;
  const addressField = block.field("address");
  const address = (addressField && readAddress(block.reader, addressField)) ?? usual.address;
  const port = block.whole("port", usual.port, portBounds);
  const controlPort = block.whole("controlPort", usual.controlPort, portBounds);
  if (port === controlPort) {
    const message = `decisions and control cannot both be on port ${port}`;
    block.refuseOrder(["controlPort", "port"], message, "different ports");
  }
  const tls = block.block("tls", clientTlsShape);
  const authorities = "the file of the authorities that Headgate is trusted by";
  if (tls !== undefined) tls.reader.requiredField(tls.fields, "caFile", authorities);
  return {
    address,
    port,
    controlPort,
    tls: tls && readClientTls(tls, { address, caFile: "" }),
    rateLimitTimeoutMs: block.durationMs(
      "rateLimitTimeout",
      usual.rateLimitTimeoutMs,
      rateLimitTimeoutBounds,
    ),
    deniesWithoutAnswer: block.flag("failureModeDeny"),
  };
}

function readListener(proxies: Block): ListenerPolicy {
  const block = proxies.block("listener", listenerShape);
  const usual = defaultProxies.listener;
  if (block === undefined) return usual;
  const addressField = block.field("address");
  const listener = {
    address: (addressField && readAddress(block.reader, addressField)) ?? usual.address,
    port: block.whole("port", usual.port, portBounds),
    outboundPort: block.whole("outboundPort", usual.outboundPort, portBounds),
    adminPort: block.whole("adminPort", usual.adminPort, portBounds),
    statisticsPort: block.whole("statisticsPort", usual.statisticsPort, portBounds),
    connectionsMax: block.whole("maxConnections", usual.connectionsMax, thresholdBounds),
    concurrentStreamsMax: block.whole(
      "maxConcurrentStreams",
      usual.concurrentStreamsMax,
      streamBounds,
    ),
    trustedHops: block.whole("trustedHops", usual.trustedHops, hopBounds),
    requestHeadersKibMax: block.whole("maxRequestHeadersKb", undefined, headersKibBounds),
    headersCountMax: block.whole("maxHeadersCount", undefined, thresholdBounds),
    maxConnectionMs: block.durationMs("maxConnectionDuration", undefined, tryTimeBounds),
    escapedSlashes: readEscapedSlashes(block),
    tls: readListenerTls(block),
    http3: readHttp3(block),
  };
  refuseSharedPorts(block, listener);
  return listener;
}

/** There is no HTTP/3 without TLS. */
function readHttp3(listener: Block): Http3Policy | undefined {
  const block = listener.block("http3", http3Shape);
  if (block === undefined) return undefined;
  if (listener.isLeftOut("tls")) {
    const message = '"http3" is always over TLS, and the listener speaks plaintext';
    listener.report("http3", { id: "HG207", message, expected: "tls beside it" });
  }
  return { advertisedPort: block.whole("advertisedPort", undefined, portBounds) };
}

/** What an edge proxy may do with an escaped slash in a path. */
export const escapedSlashesActions: readonly EscapedSlashesAction[] = [
  "keepUnchanged",
  "rejectRequest",
  "unescapeAndRedirect",
  "unescapeAndForward",
];

function readEscapedSlashes(block: Block): EscapedSlashesAction | undefined {
  const field = block.field("pathWithEscapedSlashesAction");
  const finding = { id: "HG133", what: "something to do with escaped slashes" } as const;
  return field && block.reader.readChoice(field, escapedSlashesActions, finding);
}

function readGateway(proxies: Block): GatewayPolicy {
  const block = proxies.block("gateway", gatewayShape);
  if (block === undefined) return defaultProxies.gateway;
  const label = (name: string): string | undefined => {
    const field = block.field(name);
    return field && readLabel(block.reader, field);
  };
  const labelsField = block.field("labels");
  const items = block.items("listeners", "a list of listeners", gatewayListenersMax);
  const listeners = items.flatMap((item) => {
    return readGatewayListener(block.reader, item.value ?? item.key) ?? [];
  });
  return {
    name: label("name"),
    namespace: label("namespace"),
    labels: labelsField && readPodLabels(block.reader, labelsField, "labels of a gateway's pods"),
    listeners: listeners.length === 0 ? undefined : listeners,
  };
}

/** Protocols of a Gateway's listener that serve HTTP. Source: Gateway API, ProtocolType. */
export const gatewayProtocols = ["HTTP", "HTTPS"] as const;

function readGatewayListener(reader: NodeReader, node: ParsedNode): GatewayListener | undefined {
  const block = Block.at(reader, node, gatewayListenerShape);
  if (block === undefined) return undefined;
  const { fields } = block;
  const nameField = reader.requiredField(fields, "name", "the listener's name in the Gateway");
  reader.requiredField(fields, "port", "the listener's port in the Gateway");
  const name = nameField && readLabel(reader, nameField);
  const port = block.whole("port", undefined, portBounds);
  const hostField = block.field("hostname");
  const hostname = hostField && readHostPattern(reader, hostField);
  const protocolField = block.field("protocol");
  const finding = { id: "HG133", what: "a protocol of a Gateway's listener" } as const;
  const protocol = protocolField && reader.readChoice(protocolField, gatewayProtocols, finding);
  return name === undefined || port === undefined ? undefined : { name, port, hostname, protocol };
}

function refuseSharedPorts(block: Block, listener: ListenerPolicy): void {
  const names = ["port", "outboundPort", "adminPort", "statisticsPort"] as const;
  names.forEach((name, i) => {
    const other = names.slice(0, i).find((each) => listener[each] === listener[name]);
    if (other === undefined) return;
    const message = `${name} and ${other} are both ${listener[name]}`;
    block.refuseOrder([name, other], message, "different ports");
  });
}
