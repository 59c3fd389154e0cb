import { visibleText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { choice, duration, flag, readBy, text, whole } from "../text/form.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, inner, innerOrOff, items, object } from "../text/object.js";
import { portBounds } from "../text/quantities.js";
import { address, file, hostPattern, label, podLabels, url } from "../text/service-texts.js";
import { adaptiveConcurrency } from "../upstream/adaptive-concurrency.js";
import { admissionControl } from "../upstream/admission-control.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";
import { headgateTls } from "../upstream/client-tls.js";
import { tryTimeBounds } from "../upstream/retries.js";
import { defaultProxies } from "./default-proxies.js";
import { listenerTls } from "./listener-tls.js";
import { proxyOverload } from "./proxy-overload.js";

/** Listeners of a Gateway. Source: Gateway API, GatewaySpec. */
const gatewayListenersMax = 64;

/** The longest that a request may wait for a rate limit's answer, in milliseconds. */
export const rateLimitTimeoutMsMax = 60_000;

const headgate = object(
  { title: "headgate", docs: "Where proxies find Headgate." },
  {
    address: field(address, "A host name or an IP address.", {
      default: "headgate.headgate.svc.cluster.local",
    }),
    port: field(whole(portBounds), "The port of decisions.", {
      larger: "different",
      default: 8_081,
    }),
    controlPort: field(whole(portBounds), "The port of xDS and statistics.", {
      larger: "different",
      default: 18_000,
    }),
    tls: field(inner(headgateTls), "TLS to it. Left out: plaintext."),
    rateLimitTimeout: field(
      duration({ minMs: 1, maxMs: rateLimitTimeoutMsMax }),
      "How long a request waits for a rate limit's answer.",
      // Envoy's own.
      { larger: "different", as: "rateLimitTimeoutMs", default: 20 },
    ),
    failureModeDeny: field(flag, "Whether no answer means refused.", {
      as: "deniesWithoutAnswer",
      default: false,
    }),
  },
  {
    data({ tls, ...rest }) {
      return { ...rest, tls: tls && { ...tls, serverName: tls.serverName ?? rest.address } };
    },
    check(block, { port, controlPort }) {
      if (port !== controlPort) return;
      const message = `decisions and control cannot both be on port ${port}`;
      block.refuseOrder(["controlPort", "port"], message, "different ports");
    },
  },
);

const http3 = object(
  {
    title: "http3",
    docs: "HTTP/3 at an edge proxy, on the UDP port of the listener's number.",
  },
  {
    advertisedPort: field(
      whole(portBounds),
      "The port that callers are told (alt-svc), where others reach it. Left out: the listener's.",
      { larger: "different" },
    ),
  },
);

/** What must be different ports of one listener. */
const listenerPorts = ["port", "outboundPort", "adminPort", "statisticsPort"] as const;

const listener = object(
  { title: "a listener", docs: "The listener of generated proxies." },
  {
    address: field(address, "The IP address on which callers are listened for.", {
      default: "0.0.0.0",
    }),
    port: field(whole(portBounds), "Where requests come in.", {
      larger: "different",
      default: 10_000,
    }),
    outboundPort: field(
      whole(portBounds),
      "Where a sidecar takes what its own service asks of others.",
      { larger: "different", default: 10_001 },
    ),
    adminPort: field(whole(portBounds), "Envoy's admin port, on loopback only.", {
      larger: "different",
      default: 9_901,
    }),
    statisticsPort: field(
      whole(portBounds),
      "Where Prometheus finds /stats/prometheus, and nothing else of the admin port.",
      { larger: "different", default: 9_902 },
    ),
    maxConnections: field(whole(thresholdBounds), "Open connections of one listener.", {
      larger: "looser",
      as: "connectionsMax",
      default: 10_000,
    }),
    maxConcurrentStreams: field(
      // Source: envoy.config.core.v3.Http2ProtocolOptions.
      whole({ min: 1, max: 2_147_483_647 }),
      "Streams of one HTTP/2 connection.",
      { larger: "looser", as: "concurrentStreamsMax", default: 100 },
    ),
    trustedHops: field(
      whole({ min: 0, max: 100 }),
      "Proxies of yours before this one, whose x-forwarded-for is believed.",
      { larger: "different", default: 0 },
    ),
    maxRequestHeadersKb: field(
      // Source: HttpConnectionManager.
      whole({ min: 1, max: 8_192 }),
      "KiB of a request's headers; more are answered with 431. Left out: 60.",
      { larger: "looser", as: "requestHeadersKibMax" },
    ),
    maxHeadersCount: field(
      whole(thresholdBounds),
      "Headers of a request; more are answered with 431. Left out: 100.",
      { larger: "looser", as: "headersCountMax" },
    ),
    maxConnectionDuration: field(
      duration(tryTimeBounds),
      "A caller's connection, which is drained then. Left out: no bound.",
      { larger: "different", as: "maxConnectionMs" },
    ),
    pathWithEscapedSlashesAction: field(
      choice(
        { what: "something to do with escaped slashes" },
        "keepUnchanged",
        "rejectRequest",
        "unescapeAndRedirect",
        "unescapeAndForward",
      ),
      "What an edge proxy does with %2F and %5C in paths. Left out: unescapeAndRedirect, or as " +
        "Istio or Envoy Gateway has it by itself.",
      { as: "escapedSlashes" },
    ),
    tls: field(inner(listenerTls), "TLS to it. Left out: plaintext."),
    http3: field(inner(http3), "HTTP/3 beside HTTP/2 and HTTP/1.1; needs tls. Left out: none."),
  },
  {
    data: (read) => read,
    check(block, read) {
      if (block.field("http3") !== undefined && block.isLeftOut("tls")) {
        const message = '"http3" is always over TLS, and the listener speaks plaintext';
        block.report("http3", { id: "HG207", message, expected: "tls beside it" });
      }
      refuseSharedPorts(block, read);
    },
  },
);

/** The listener of generated proxies. */
export type ListenerPolicy = typeof listener.defaults;

function refuseSharedPorts(block: Block, read: ListenerPolicy): void {
  listenerPorts.forEach((name, i) => {
    const other = listenerPorts.slice(0, i).find((each) => read[each] === read[name]);
    if (other === undefined) return;
    const message = `${name} and ${other} are both ${read[name]}`;
    block.refuseOrder([name, other], message, "different ports");
  });
}

const gatewayListener = object(
  {
    title: "a listener of a Gateway",
    docs: "A listener of the Gateway for HTTP or HTTPS.",
  },
  {
    name: field(label, "Its name in the Gateway.", {
      needs: "the listener's name in the Gateway",
    }),
    port: field(whole(portBounds), "Its port in the Gateway.", {
      larger: "different",
      needs: "the listener's port in the Gateway",
    }),
    hostname: field(hostPattern, "Its hostname in the Gateway. Left out: all hosts."),
    protocol: field(
      // Those that serve HTTP. Source: Gateway API, ProtocolType.
      choice({ what: "a protocol of a Gateway's listener" }, "HTTP", "HTTPS"),
      "Its protocol in the Gateway; http3 needs it.",
    ),
  },
  {
    data: ({ name, port, ...rest }) =>
      name === undefined || port === undefined ? undefined : { name, port, ...rest },
  },
);

const gateway = object(
  { title: "a gateway", docs: "The gateway that objects are made for." },
  {
    name: field(label, "Its name. Left out: the policy's."),
    namespace: field(label, "Its namespace. Left out: that of the generated objects."),
    labels: field(
      podLabels("labels of a gateway's pods"),
      "Labels of the pods of Istio's gateway, for `generate istio`. Left out: " +
        "`istio: ingressgateway`.",
    ),
    listeners: field(
      items(inner(gatewayListener), { expected: "a list of listeners", max: gatewayListenersMax }),
      "All of its listeners for HTTP and HTTPS, in their order. Left out: `http` on port 80 alone.",
    ),
  },
  {
    data: ({ listeners = [], ...rest }) => ({
      ...rest,
      listeners: listeners.length === 0 ? undefined : listeners,
    }),
  },
);

/** Alerts add the name of a section, and Prometheus fills in what stands in braces. */
const runbookUrl = readBy(text({ charsMax: 2_048 }, /^https?:\/\/[^#{}]+$/), (reader, place) => {
  const written = url.read(reader, place);
  if (written === undefined || !/[#{}]/.test(written)) return written;
  const message = "the URL of a runbook has neither a fragment nor braces";
  return reader.report(place.key, { id: "HG227", message });
});

const everyServiceDocs = "What every service has that says nothing of it. Left out: none.";

/** `proxies`. */
export const proxies = object(
  { title: "proxies", docs: "What holds for every proxy of the fleet." },
  {
    expected: field(
      whole({ min: 1, max: 1_000_000 }),
      "Proxies that share a limit while nobody drives them.",
      { larger: "different", as: "expectedCount", default: 1 },
    ),
    headgate: field(inner(headgate), "Where proxies find Headgate."),
    listener: field(inner(listener), "The listener of generated proxies."),
    gateway: field(inner(gateway), "The gateway that objects are made for."),
    overload: field(inner(proxyOverload), "Envoy's overload manager. Left out: none is written."),
    adaptiveConcurrency: field(innerOrOff(adaptiveConcurrency), everyServiceDocs, {
      added: "stricter",
    }),
    admissionControl: field(innerOrOff(admissionControl), everyServiceDocs, { added: "stricter" }),
    runbookUrl: field(
      runbookUrl,
      "Where people find the runbook: alerts link to its sections, or with a `*` in the URL to a " +
        "page of that name each, unless `--runbook-url` says where. Left out: the file beside " +
        "the rules.",
    ),
    secretsFolder: field(
      file,
      "Where Envoys find the files of secrets, of which `NAME.yaml` has a certificate and " +
        "`NAME-cacert.yaml` authorities. Left out: /etc/envoy/secrets.",
    ),
  },
  {
    data(read) {
      const { adaptiveConcurrency: adaptive, admissionControl: control } = read;
      return {
        ...read,
        headgate: read.headgate ?? headgate.defaults,
        listener: read.listener ?? listener.defaults,
        gateway: read.gateway ?? gateway.defaults,
        adaptiveConcurrency: adaptive === "off" ? undefined : adaptive,
        admissionControl: control === "off" ? undefined : control,
      };
    },
  },
);

/** What holds for every proxy of the fleet: `proxies` of a policy. Plain data. */
export type ProxyPolicy = typeof proxies.defaults;

/** The gateway whose proxies `generate gateway` and `generate istio` patch. */
type GatewayPolicy = ProxyPolicy["gateway"];

/** A listener of a Gateway. Source: Gateway API, Listener. */
export type GatewayListener = NonNullable<GatewayPolicy["listeners"]>[number];

/** What an edge proxy does with %2F and %5C in paths. */
export type EscapedSlashesAction = NonNullable<ListenerPolicy["escapedSlashes"]>;

/** `proxies` as one file of a policy says it: a second one is refused. */
export class ProxiesReader {
  #policy: ProxyPolicy = defaultProxies;
  #place: string | undefined;

  /** What is said, or the default. */
  get policy(): ProxyPolicy {
    return this.#policy;
  }

  /** Reads the field of a file. */
  read(reader: NodeReader, written: Field): void {
    const policy = inner(proxies).read(reader, written);
    if (this.#place !== undefined) {
      const message = `"proxies" stands already in ${this.#place}`;
      reader.report(written.key, { id: "HG249", message });
      return;
    }
    const { line } = reader.source.position(written.key.range[0]);
    this.#place = `${visibleText(reader.source.file)}:${line}`;
    if (policy !== undefined) this.#policy = policy;
  }
}
