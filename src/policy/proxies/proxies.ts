import type { Block } from "../text/block.js";
import { placeText } from "../text/defined-names.js";
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
import {
  type ConnectionLimitClaim,
  type TcpListenerPolicy,
  tcpListeners,
} from "./tcp-listeners.js";

/** Maximum number of listeners of a Gateway. Source: Gateway API, GatewaySpec. */
const gatewayListenersMax = 64;

/** Maximum time that a request may wait for a rate limit's answer, in milliseconds. */
export const rateLimitTimeoutMsMax = 60_000;

const headgate = object(
  { title: "headgate", docs: "Where proxies reach Headgate." },
  {
    address: field(address, "A host name or an IP address.", {
      default: "headgate.headgate.svc.cluster.local",
    }),
    port: field(whole(portBounds), "The decision port.", {
      larger: "different",
      default: 8_081,
    }),
    controlPort: field(whole(portBounds), "The control port: xDS and statistics.", {
      larger: "different",
      default: 18_000,
    }),
    tls: field(inner(headgateTls), "TLS to Headgate. Default: plaintext."),
    rateLimitTimeout: field(
      duration({ minMs: 1, maxMs: rateLimitTimeoutMsMax }),
      "The timeout of a rate limit call.",
      // Envoy's own default.
      { larger: "different", as: "rateLimitTimeoutMs", default: 20 },
    ),
    failureModeDeny: field(flag, "Whether requests are refused when Headgate does not answer.", {
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
      const message = `decisions and control cannot both use port ${port}`;
      block.refuseOrder(["controlPort", "port"], message, "different ports");
    },
  },
);

const http3 = object(
  {
    title: "http3",
    docs: "HTTP/3 at an edge proxy, on UDP, with the listener's port number.",
  },
  {
    advertisedPort: field(
      whole(portBounds),
      "The port that is advertised to callers (alt-svc), if it differs. Default: " +
        "the listener's port.",
      { larger: "different" },
    ),
  },
);

/** Ports of one listener, which must differ. */
const listenerPorts = ["port", "outboundPort", "adminPort", "statisticsPort"] as const;

const listener = object(
  { title: "a listener", docs: "The listener of generated proxies." },
  {
    address: field(address, "The IP address that the listener binds to.", {
      default: "0.0.0.0",
    }),
    port: field(whole(portBounds), "The port of the listener.", {
      larger: "different",
      default: 10_000,
    }),
    outboundPort: field(
      whole(portBounds),
      "The port where a sidecar takes outbound requests of its own service.",
      { larger: "different", default: 10_001 },
    ),
    adminPort: field(whole(portBounds), "Envoy's admin port, on loopback only.", {
      larger: "different",
      default: 9_901,
    }),
    statisticsPort: field(
      whole(portBounds),
      "The port where Prometheus scrapes /stats/prometheus. Nothing else of the " +
        "admin port is served there.",
      { larger: "different", default: 9_902 },
    ),
    maxConnections: field(whole(thresholdBounds), "Maximum open connections of one listener.", {
      larger: "looser",
      as: "connectionsMax",
      default: 10_000,
    }),
    maxConcurrentStreams: field(
      // Source: envoy.config.core.v3.Http2ProtocolOptions.
      whole({ min: 1, max: 2_147_483_647 }),
      "Maximum concurrent streams of one HTTP/2 connection.",
      { larger: "looser", as: "concurrentStreamsMax", default: 100 },
    ),
    trustedHops: field(
      whole({ min: 0, max: 100 }),
      "Number of your own proxies in front of this one whose x-forwarded-for is trusted.",
      { larger: "different", default: 0 },
    ),
    maxRequestHeadersKb: field(
      // Source: HttpConnectionManager.
      whole({ min: 1, max: 8_192 }),
      "Maximum KiB of request headers; larger requests get 431. Default: 60.",
      { larger: "looser", as: "requestHeadersKibMax" },
    ),
    maxHeadersCount: field(
      whole(thresholdBounds),
      "Maximum number of request headers; more get 431. Default: 100.",
      { larger: "looser", as: "headersCountMax" },
    ),
    maxConnectionDuration: field(
      duration(tryTimeBounds),
      "Maximum duration of a caller's connection, which is then drained. Default: no limit.",
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
      "How an edge proxy handles %2F and %5C in paths. Default: " +
        "unescapeAndRedirect, or the default of Istio or Envoy Gateway.",
      { as: "escapedSlashes" },
    ),
    tls: field(inner(listenerTls), "TLS to Headgate. Default: plaintext."),
    http3: field(
      inner(http3),
      "HTTP/3 in addition to HTTP/2 and HTTP/1.1; needs tls. Default: off.",
    ),
  },
  {
    data: (read) => read,
    check(block, read) {
      if (block.field("http3") !== undefined && block.isLeftOut("tls")) {
        const message = '"http3" needs TLS, and the listener is plaintext';
        block.report("http3", { id: "HG207", message, expected: "tls next to it" });
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
    name: field(label, "The listener's name in the Gateway.", {
      needs: "the listener's name in the Gateway",
    }),
    port: field(whole(portBounds), "The listener's port in the Gateway.", {
      larger: "different",
      needs: "the listener's port in the Gateway",
    }),
    hostname: field(hostPattern, "The listener's hostname in the Gateway. Default: all hosts."),
    protocol: field(
      // Protocols that serve HTTP. Source: Gateway API, ProtocolType.
      choice({ what: "a protocol of a Gateway's listener" }, "HTTP", "HTTPS"),
      "The listener's protocol in the Gateway. HTTP/3 needs https.",
    ),
  },
  {
    data: ({ name, port, ...rest }) =>
      name === undefined || port === undefined ? undefined : { name, port, ...rest },
  },
);

const gateway = object(
  { title: "a gateway", docs: "The Gateway that the generated objects attach to." },
  {
    name: field(label, "The name of the Gateway. Default: the name of the policy."),
    namespace: field(
      label,
      "The namespace of the Gateway. Default: that of the generated objects.",
    ),
    labels: field(
      podLabels("labels of a gateway's pods"),
      "Labels of Istio's gateway pods, for `generate istio`. Default: `istio: ingressgateway`.",
    ),
    listeners: field(
      items(inner(gatewayListener), { expected: "a list of listeners", max: gatewayListenersMax }),
      "All HTTP and HTTPS listeners of the Gateway, in its order. Default: only " +
        "`http` on port 80.",
    ),
  },
  {
    data: ({ listeners = [], ...rest }) => ({
      ...rest,
      listeners: listeners.length === 0 ? undefined : listeners,
    }),
  },
);

/** Alerts append the name of a section to it, and Prometheus expands braces. */
const runbookUrl = readBy(text({ charsMax: 2_048 }, /^https?:\/\/[^#{}]+$/), (reader, place) => {
  const written = url.read(reader, place);
  if (written === undefined || !/[#{}]/.test(written)) return written;
  const message = "the runbook URL must not contain a fragment or braces";
  return reader.report(place.key, { id: "HG227", message });
});

const everyServiceDocs = "Defaults for services that do not set the block. Default: none.";

/** `proxies`. */
export const proxies = object(
  { title: "proxies", docs: "Settings for every proxy of the fleet." },
  {
    expected: field(
      whole({ min: 1, max: 1_000_000 }),
      "Number of proxies that divide a limit while the feedback loop does not run.",
      { larger: "different", as: "expectedCount", default: 1 },
    ),
    headgate: field(inner(headgate), "Where proxies reach Headgate."),
    listener: field(inner(listener), "The listener of generated proxies."),
    gateway: field(inner(gateway), "The Gateway that the generated objects attach to."),
    tcpListeners: field(
      tcpListeners,
      "Listeners of edge proxies for TCP and Redis. Default: none.",
      { default: [] },
    ),
    overload: field(inner(proxyOverload), "Envoy's overload manager. Default: not configured."),
    adaptiveConcurrency: field(innerOrOff(adaptiveConcurrency), everyServiceDocs, {
      added: "stricter",
    }),
    admissionControl: field(innerOrOff(admissionControl), everyServiceDocs, { added: "stricter" }),
    runbookUrl: field(
      runbookUrl,
      "The URL of the runbook, for links in alerts. A `*` in the URL stands for " +
        "the alert's page; otherwise the alert's name is the anchor. `--runbook-url` " +
        "overrides it. Default: the file next to the rules.",
    ),
    secretsFolder: field(
      file,
      "The directory of secrets on the proxies. `NAME.yaml` contains a certificate " +
        "and `NAME-cacert.yaml` the CAs. Default: /etc/envoy/secrets.",
    ),
  },
  {
    data(read) {
      const { adaptiveConcurrency: adaptive, admissionControl: control } = read;
      const tcp: readonly TcpListenerPolicy[] = read.tcpListeners.map((one) => one.listener);
      const policy = {
        ...read,
        headgate: read.headgate ?? headgate.defaults,
        listener: read.listener ?? listener.defaults,
        gateway: read.gateway ?? gateway.defaults,
        tcpListeners: tcp,
        adaptiveConcurrency: adaptive === "off" ? undefined : adaptive,
        admissionControl: control === "off" ? undefined : control,
      };
      return { policy, claims: read.tcpListeners.flatMap(({ claim }) => claim ?? []) };
    },
    check(block, { policy: { listener: http } }, { tcpListeners: tcp }) {
      const taken = new Set(listenerPorts.map((name) => http[name]));
      for (const { listener: one, node } of tcp) {
        if (taken.has(one.port)) {
          const message = `another listener has the port ${one.port}`;
          block.reader.report(node, { id: "HG240", message, expected: "different ports" });
        }
        taken.add(one.port);
      }
    },
  },
);

/** Settings for every proxy of the fleet: `proxies` of a policy. Plain data. */
export type ProxyPolicy = (typeof proxies.defaults)["policy"];

/** The gateway whose proxies `generate gateway` and `generate istio` patch. */
type GatewayPolicy = ProxyPolicy["gateway"];

/** A listener of a Gateway. Source: Gateway API, Listener. */
export type GatewayListener = NonNullable<GatewayPolicy["listeners"]>[number];

/** Handling of %2F and %5C in paths by an edge proxy. */
export type EscapedSlashesAction = NonNullable<ListenerPolicy["escapedSlashes"]>;

/** Reads `proxies` from one file of a policy. A second one is refused. */
export class ProxiesReader {
  #policy: ProxyPolicy = defaultProxies;
  #claims: readonly ConnectionLimitClaim[] = [];
  #place: string | undefined;

  /** The written settings, or the defaults. */
  get policy(): ProxyPolicy {
    return this.#policy;
  }

  /** Limits that TCP listeners refer to. */
  get claims(): readonly ConnectionLimitClaim[] {
    return this.#claims;
  }

  /** Reads the field of a file. */
  read(reader: NodeReader, written: Field): void {
    const read = inner(proxies).read(reader, written);
    if (this.#place !== undefined) {
      const message = `"proxies" is already defined in ${this.#place}`;
      reader.report(written.key, { id: "HG249", message });
      return;
    }
    this.#place = placeText(reader, written.key);
    if (read === undefined) return;
    this.#policy = read.policy;
    this.#claims = read.claims;
  }
}
