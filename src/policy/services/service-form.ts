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

/** Hosts of one service. */
export const hostsMax = 64;

/** Clusters that one service may be given. */
export const clustersMax = 64;

const upstream = object(
  { title: "an upstream", docs: "Where a service listens." },
  {
    address: field(address, "A host name or an IP address.", {
      needs: "a host name or IP address",
    }),
    port: field(whole(portBounds), "The port.", {
      larger: "different",
      needs: "a port, 1 to 65535",
    }),
    tls: field(innerOrOff(upstreamTls), "TLS to it. Left out: on port 443, and on no other."),
    protocol: field(
      choice({ what: "a protocol of a service" }, "http1", "http2"),
      "What it speaks; gRPC needs http2. Left out: as its callers do, and behind a listener of " +
        "TLS http1, or what both sides of its own TLS agree on.",
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
  { title: "a workload", docs: "Which pods serve it." },
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

/** Protocols that one service's requests may change to. */
export const upgradesMax = 16;

/** The form of a protocol's name. Source: RFC 9110 section 7.8. */
const upgradePattern = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;

const upgradeRule: TextRule = {
  charsMax: 64,
  forbidden: /[^!-~]/,
  expected: "a protocol as Upgrade names it, such as websocket or spdy/3.1",
};

/** CONNECT is no upgrade of a route: it has a match of its own, which no policy can say. */
const upgrade = readBy(text(upgradeRule, upgradePattern), (reader, place) => {
  const written = reader.readText(place, upgradeRule);
  const name = written?.toLowerCase();
  if (written === undefined || name === undefined) return undefined;
  if (name !== "connect" && upgradePattern.test(name)) return name;
  const message = `${quoteText(written)} is not a protocol that a request changes to`;
  return reader.report(place.key, { id: "HG133", message, expected: upgradeRule.expected });
});

/** A map, or `off`, whose defaults stand in `proxies`: it is read once those are known. */
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
    docs: "A service, and what protects it. A name is a whole service.",
  },
  {
    name: field(placed(label), "Names it in requests, metrics and generated configuration.", {
      needs: "the service's name",
    }),
    namespace: field(label, "Its namespace in Kubernetes."),
    hosts: field(
      items(placed(host), { expected: "a list of hosts", max: hostsMax }),
      "Values of `:authority` that mean it, in any case and with any port. Left out: the " +
        "route names the service.",
      { isGenerated: true, default: [] },
    ),
    upstream: field(inner(upstream), "Where it listens. Left out: only Envoy knows.", {
      isGenerated: true,
    }),
    clusters: field(
      items(placed(cluster), { expected: "a list of clusters' names", max: clustersMax }),
      "Further clusters of Envoys that lead to it, beside those named by it and its upstream.",
      { default: [] },
    ),
    workload: field(
      inner(workload),
      "Which pods serve it. Default: those labelled `app: <name>`.",
      {
        as: "workloadLabels",
      },
    ),
    direction: field(
      words("inbound", "outbound"),
      "Which Envoys protect it: those before it, or those of its callers.",
      { isGenerated: true, default: "inbound" },
    ),
    rateLimit: field(
      innerBlock(serviceRateLimit),
      "The limits that its requests are charged by. Left out: none.",
      { isGenerated: true, added: "stricter" },
    ),
    priority: field(inner(priority), "Who goes first when not all can.", {
      default: priority.defaults,
    }),
    admission: field(innerBlock(admission), "What a request has to pass. Left out: nothing.", {
      added: "stricter",
    }),
    concurrency: field(
      innerBy(concurrency, readConcurrency),
      "The law that sets its limit; without `admission` the limit holds with permits and " +
        "nothing else.",
    ),
    circuitBreakers: field(innerBlock(circuitBreakers), "What one proxy may have open to it.", {
      isGenerated: true,
      added: "stricter",
    }),
    outlierDetection: field(innerOrOff(outlierDetection), "When a host of it is left out.", {
      isGenerated: true,
      added: "stricter",
    }),
    healthChecks: field(
      inner(healthChecks),
      "How each proxy asks hosts whether they are well. Left out: it does not.",
      { isGenerated: true },
    ),
    loadBalancing: field(inner(loadBalancing), "How hosts are chosen.", {
      isGenerated: true,
      default: loadBalancing.defaults,
    }),
    retries: field(innerBlock(retries), "What is tried again. Left out: nothing.", {
      isGenerated: true,
    }),
    timeouts: field(inner(timeouts), "How long what may take.", {
      isGenerated: true,
      default: timeouts.defaults,
    }),
    upgrades: field(
      items(upgrade, { expected: "a list of protocols, [] for none", max: upgradesMax }),
      "Protocols that a request may change to; one that has changed lasts beyond " +
        "`timeouts.request`, its permit for a lease of that and a minute at least. Left out: " +
        "websocket; []: none.",
      { isGenerated: true, default: defaultBlocks.upgrades },
    ),
    localRateLimit: field(inner(localRateLimit), "A backstop in each proxy. Left out: none.", {
      isGenerated: true,
      added: "stricter",
    }),
    adaptiveConcurrency: field(
      afterProxies(adaptiveConcurrency),
      "Envoy's own gradient controller. Left out: as `proxies` says.",
      { isGenerated: true, added: "stricter" },
    ),
    admissionControl: field(
      afterProxies(admissionControl),
      "Envoy's admission control. Left out: as `proxies` says.",
      { isGenerated: true, added: "stricter" },
    ),
  },
);
