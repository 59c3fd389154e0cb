import { serviceUsage } from "../budgets/usage-form.js";
import { quoteText } from "../problems/problem.js";
import { choice, readBy, ruledText, text, whole, words } from "../text/form.js";
import {
  field,
  inner,
  innerBlock,
  innerBy,
  innerOrOff,
  items,
  type ObjectForm,
  object,
  placed,
  wordOr,
} from "../text/object.js";
import { portBounds } from "../text/quantities.js";
import { address, host, label, podLabels } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { adaptiveConcurrency } from "../upstream/adaptive-concurrency.js";
import { admissionControl } from "../upstream/admission-control.js";
import { circuitBreakers } from "../upstream/circuit-breakers.js";
import { type UpstreamPlace, upstreamTls, upstreamTlsOf } from "../upstream/client-tls.js";
import { defaultBlocks } from "../upstream/default-upstream.js";
import { healthChecks } from "../upstream/health-checks.js";
import { loadBalancing } from "../upstream/load-balancing.js";
import { localRateLimit } from "../upstream/local-rate-limit.js";
import { outlierDetection } from "../upstream/outlier-detection.js";
import { retries, timeouts } from "../upstream/retries.js";
import { admission } from "./service-admission.js";
import { concurrency, readConcurrency } from "./service-concurrency.js";
import { priority } from "./service-priority.js";
import { serviceRateLimit } from "./service-rate-limit.js";

/** Maximum number of hosts of one service. */
export const hostsMax = 64;

/** Maximum number of additional clusters of one service. */
export const clustersMax = 64;

const upstream = object(
  { title: "an upstream", docs: "The address of a service." },
  {
    address: field(address, "A host name or an IP address.", {
      needs: "a host name or IP address",
    }),
    port: field(whole(portBounds), "The port.", {
      larger: "different",
      needs: "a port, 1 to 65535",
    }),
    tls: field(
      innerOrOff(upstreamTls),
      "TLS to the service. Default: on for port 443, otherwise off.",
    ),
    protocol: field(
      choice({ what: "a protocol of a service" }, "http1", "http2"),
      "The protocol of the service; gRPC needs http2. Default: that of its " +
        "callers. Behind a TLS listener: http1, or what ALPN negotiates with the " +
        "service.",
    ),
  },
  {
    data({ address: place, port, tls, protocol }): UpstreamPlace | undefined {
      if (place === undefined || port === undefined) return undefined;
      const at = { address: place, port };
      return { ...at, tls: upstreamTlsOf(tls, at), protocol };
    },
  },
);

const podsExpected = "the labels of its pods, such as {app: orders}";

const workload = object(
  { title: "a workload", docs: "The pods of the service." },
  {
    labels: field(podLabels(podsExpected), "Labels of the pods, for selectors.", {
      needs: podsExpected,
    }),
  },
  { data: ({ labels }) => labels },
);

const cluster = ruledText({
  charsMax: 256,
  forbidden: /[^!-~]/,
  expected: "a cluster's name as Envoy has it, such as outbound|80||orders.shop.svc.cluster.local",
});

/** Maximum number of protocols that one service's requests may upgrade to. */
export const upgradesMax = 16;

/** The form of a protocol's name. Source: RFC 9110 section 7.8. */
const upgradePattern = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;

const upgradeRule: TextRule = {
  charsMax: 64,
  forbidden: /[^!-~]/,
  expected: "a protocol as Upgrade names it, such as websocket or spdy/3.1",
};

/** CONNECT is not an upgrade: it needs its own route match, which a policy cannot express. */
const upgrade = readBy(text(upgradeRule, upgradePattern), (reader, place) => {
  const written = reader.readText(place, upgradeRule);
  const name = written?.toLowerCase();
  if (written === undefined || name === undefined) return undefined;
  if (name !== "connect" && upgradePattern.test(name)) return name;
  const message = `${quoteText(written)} is not a protocol that a request can upgrade to`;
  return reader.report(place.key, { id: "HG133", message, expected: upgradeRule.expected });
});

/** A map or `off` with defaults in `proxies`. It is read after those are known. */
function afterProxies<Data>(form: ObjectForm<Data>) {
  const written = wordOr(
    ["off"],
    innerBy(form, (block) => block),
    "a map of names, or off",
  );
  return readBy<(defaults: Data | undefined) => Data | "off">(written, (reader, place) => {
    const said = written.read(reader, place);
    return said && ((defaults) => (said === "off" ? said : form.read(said, defaults)));
  });
}

/** An item of `services`. */
export const service = object(
  {
    title: "a service",
    docs: "A service, and its protection.",
  },
  {
    name: field(placed(label), "The name in requests, metrics and generated configuration.", {
      needs: "the service's name",
    }),
    namespace: field(label, "The namespace in Kubernetes."),
    hosts: field(
      items(placed(host), { expected: "a list of hosts", max: hostsMax }),
      "Values of `:authority` that select the service, in any case and with any " +
        "port. Default: the route names the service.",
      { isGenerated: true, default: [] },
    ),
    upstream: field(
      inner(upstream),
      "The address of the service. Default: only Envoy's configuration has it.",
      {
        isGenerated: true,
      },
    ),
    clusters: field(
      items(placed(cluster), { expected: "a list of clusters' names", max: clustersMax }),
      "Additional Envoy clusters of the service, besides those with its name and its upstream.",
      { default: [] },
    ),
    workload: field(
      inner(workload),
      "The pods of the service. Default: those with the label `app: <name>`.",
      {
        as: "workloadLabels",
      },
    ),
    direction: field(
      words("inbound", "outbound"),
      "Which Envoys protect the service: those in front of it, or those of its callers.",
      { isGenerated: true, default: "inbound" },
    ),
    rateLimit: field(
      innerBlock(serviceRateLimit),
      "The limits that requests of this service are charged to. Default: none.",
      { isGenerated: true, added: "stricter" },
    ),
    priority: field(inner(priority), "Classes of requests: which ones go first under load.", {
      default: priority.defaults,
    }),
    admission: field(
      innerBlock(admission),
      "Checks that a request must pass before the service. Default: none.",
      {
        added: "stricter",
      },
    ),
    concurrency: field(
      innerBy(concurrency, readConcurrency),
      "The law that sets the service's limit. Without `admission`, only permits " +
        "enforce the limit.",
    ),
    usage: field(
      placed(inner(serviceUsage)),
      "How calls are measured that `budgets` charge. Default: they are not.",
      { isGenerated: true },
    ),
    circuitBreakers: field(
      innerBlock(circuitBreakers),
      "Maximum connections and requests of one proxy.",
      {
        isGenerated: true,
        added: "stricter",
      },
    ),
    outlierDetection: field(innerOrOff(outlierDetection), "When a failing host is ejected.", {
      isGenerated: true,
      added: "stricter",
    }),
    healthChecks: field(inner(healthChecks), "Active health checks of each proxy. Default: off.", {
      isGenerated: true,
    }),
    loadBalancing: field(inner(loadBalancing), "How hosts are chosen.", {
      isGenerated: true,
      default: loadBalancing.defaults,
    }),
    retries: field(innerBlock(retries), "Which requests are retried. Default: none.", {
      isGenerated: true,
    }),
    timeouts: field(inner(timeouts), "Timeouts of requests, connections and streams.", {
      isGenerated: true,
      default: timeouts.defaults,
    }),
    upgrades: field(
      items(upgrade, { expected: "a list of protocols, [] for none", max: upgradesMax }),
      "Protocols that a request may upgrade to. An upgraded request may outlast " +
        "`timeouts.request`; its permit has a lease of that time, at least one " +
        "minute. Default: websocket. []: none.",
      { isGenerated: true, default: defaultBlocks.upgrades },
    ),
    localRateLimit: field(
      inner(localRateLimit),
      "A local limit in each proxy, as a backstop. Default: none.",
      {
        isGenerated: true,
        added: "stricter",
      },
    ),
    adaptiveConcurrency: field(
      afterProxies(adaptiveConcurrency),
      "Envoy's adaptive concurrency filter. Default: as in `proxies`.",
      { isGenerated: true, added: "stricter" },
    ),
    admissionControl: field(
      afterProxies(admissionControl),
      "Envoy's admission control filter. Default: as in `proxies`.",
      { isGenerated: true, added: "stricter" },
    ),
  },
);
