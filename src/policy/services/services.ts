import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import { choice, readBy, ruledText, text, whole, words } from "../text/form.js";
import type { Field, NodeReader } from "../text/node-reader.js";
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
import {
  type AdaptiveConcurrencyPolicy,
  adaptiveConcurrency,
} from "../upstream/adaptive-concurrency.js";
import { admissionControl } from "../upstream/admission-control.js";
import { circuitBreakers, refuseIdleAuto } from "../upstream/circuit-breakers.js";
import { upstreamTls, upstreamTlsOf } from "../upstream/client-tls.js";
import { defaultBlocks } from "../upstream/default-upstream.js";
import { healthChecks } from "../upstream/health-checks.js";
import { loadBalancing } from "../upstream/load-balancing.js";
import { localRateLimit } from "../upstream/local-rate-limit.js";
import { outlierDetection } from "../upstream/outlier-detection.js";
import { refuseLongTries, retries, timeouts } from "../upstream/retries.js";
import {
  type AdmissionDraft,
  admission,
  finishAdmission,
  permitsAlone,
  refuseIdleBlocks,
} from "./service-admission.js";
import { concurrency, defaultConcurrency, readConcurrency } from "./service-concurrency.js";
import { type ServiceDraft, type ServiceList, servicesMax } from "./service-list.js";
import type { ServiceConcurrency, ServicePolicy } from "./service-policy.js";
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
    port: field(whole(portBounds), "The port.", { needs: "a port, 1 to 65535" }),
    tls: field(innerOrOff(upstreamTls), "TLS to it. Left out: on port 443, and on no other."),
    protocol: field(
      choice({ what: "a protocol of a service" }, "http1", "http2"),
      "What it speaks; gRPC needs http2. Left out: as its callers do, and behind a listener of " +
        "TLS http1, or what both sides of its own TLS agree on.",
    ),
  },
  {
    data({ address: place, port, tls, protocol }): ServicePolicy["upstream"] {
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
      { default: [] },
    ),
    upstream: field(inner(upstream), "Where it listens. Left out: only Envoy knows."),
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
      { default: "inbound" },
    ),
    rateLimit: field(
      innerBlock(serviceRateLimit),
      "The limits that its requests are charged by. Left out: none.",
    ),
    priority: field(inner(priority), "Who goes first when not all can."),
    admission: field(innerBlock(admission), "What a request has to pass. Left out: nothing."),
    concurrency: field(
      innerBy(concurrency, readConcurrency),
      "The law that sets its limit; without `admission` the limit holds with permits and " +
        "nothing else.",
    ),
    circuitBreakers: field(innerBlock(circuitBreakers), "What one proxy may have open to it."),
    outlierDetection: field(innerOrOff(outlierDetection), "When a host of it is left out."),
    healthChecks: field(
      inner(healthChecks),
      "How each proxy asks hosts whether they are well. Left out: it does not.",
    ),
    loadBalancing: field(inner(loadBalancing), "How hosts are chosen."),
    retries: field(innerBlock(retries), "What is tried again. Left out: nothing."),
    timeouts: field(inner(timeouts), "How long what may take."),
    upgrades: field(
      items(upgrade, { expected: "a list of protocols, [] for none", max: upgradesMax }),
      "Protocols that a request may change to; one that has changed lasts beyond " +
        "`timeouts.request`, its permit for a lease of that and a minute at least. Left out: " +
        "websocket; []: none.",
      { default: defaultBlocks.upgrades },
    ),
    localRateLimit: field(inner(localRateLimit), "A backstop in each proxy. Left out: none."),
    adaptiveConcurrency: field(
      afterProxies(adaptiveConcurrency),
      "Envoy's own gradient controller. Left out: as `proxies` says.",
    ),
    admissionControl: field(
      afterProxies(admissionControl),
      "Envoy's admission control. Left out: as `proxies` says.",
    ),
  },
);

type ReadService = typeof service.defaults;

/** Reads `services` into the list; what is wrong is reported. */
export function readServices(reader: NodeReader, field: Field, list: ServiceList): void {
  const items = reader.readList(field, "a list of services: {name: ...}");
  for (const item of items ?? []) {
    const block = Block.at(reader, item, service.shape);
    if (block === undefined || list.add(readService(block, list))) continue;
    const message = `a policy cannot hold more than ${servicesMax} services`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}

/** A name is a whole service; what `proxies` has to do with waits until all files are read. */
function readService(block: Block, list: ServiceList): ServiceDraft {
  const read = service.read(block);
  const name = read.name?.value;
  claimNames(block, read, list);
  const guards = readGuards(block, read);
  const { admission: draft, concurrency: law } = guards;
  const isLimited = law !== undefined || draft?.maxInFlight !== undefined;
  const isWritten = !block.isLeftOut("admission") || !block.isLeftOut("concurrency");
  if (read.circuitBreakers && !isLimited && !isWritten) refuseIdleAuto(read.circuitBreakers);
  const times = read.timeouts ?? timeouts.defaults;
  if (read.retries) refuseLongTries(read.retries, times);
  refuseProbe(block, read);
  const { outlierDetection: ejection = outlierDetection.defaults, workloadLabels } = read;
  const own = {
    namespace: read.namespace,
    hosts: read.hosts.map(({ value }) => value),
    upstream: read.upstream,
    clusters: [...new Set(read.clusters.map(({ value }) => value))],
    direction: read.direction,
    priority: read.priority ?? priority.defaults,
    ...guards,
    circuitBreakers: read.circuitBreakers?.data ?? circuitBreakers.defaults,
    outlierDetection: ejection === "off" ? undefined : ejection,
    healthChecks: read.healthChecks,
    loadBalancing: read.loadBalancing ?? loadBalancing.defaults,
    timeouts: times,
    upgrades: [...new Set(read.upgrades)],
    retries: read.retries?.data,
    localRateLimit: read.localRateLimit,
  };
  const isWrong = !block.isLeftOut("adaptiveConcurrency") && !read.adaptiveConcurrency;
  return (proxies) => {
    const adaptive = finished(read.adaptiveConcurrency, proxies.adaptiveConcurrency);
    if (law !== undefined) refuseIdleFeedback(block, law, { adaptive, isWrong });
    if (name === undefined) return undefined;
    return {
      name,
      ...own,
      admission: draft && finishAdmission(draft, proxies),
      workloadLabels: workloadLabels ?? { app: name },
      adaptiveConcurrency: adaptive,
      admissionControl: finished(read.admissionControl, proxies.admissionControl),
    };
  };
}

/** What is left out, or wrong, has its default. */
function finished<Data>(
  read: ((defaults: Data | undefined) => Data | "off") | undefined,
  defaults: Data | undefined,
): Data | undefined {
  const said = read === undefined ? defaults : read(defaults);
  return said === "off" ? undefined : said;
}

/** A name, a host and a cluster are one service's; the domain of its limits is there at the end. */
function claimNames(block: Block, read: ReadService, list: ServiceList): void {
  const { reader } = block;
  const { name, hosts, clusters, rateLimit } = read;
  if (name !== undefined) list.takeName(name.value, name.node, reader);
  for (const { value, node } of hosts) list.takeHost(value, node, reader);
  for (const { value, node } of clusters) {
    list.claimCluster({ cluster: value, service: name?.value ?? "", node, reader });
  }
  if (rateLimit?.data === undefined) return;
  const {
    rateLimit: { domain },
    domainNode,
    descriptors,
  } = rateLimit.data;
  list.claim({ reader, domain, domainNode, descriptors });
}

/** Envoy asks by gRPC where it speaks HTTP/2 to all hosts alone. */
function refuseProbe(
  block: Block,
  { upstream: place, healthChecks: checks }: Pick<ReadService, "upstream" | "healthChecks">,
): void {
  if (place?.protocol !== "http1" || checks?.probe.kind !== "grpc") return;
  const message = '"healthChecks" ask by gRPC, which is HTTP/2, and the service speaks http1';
  block.report("healthChecks", { id: "HG207", message, expected: "protocol: http2, or http" });
}

/** What Headgate itself decides by. */
function readGuards(
  block: Block,
  read: ReadService,
): Pick<ServicePolicy, "rateLimit" | "concurrency"> & {
  readonly admission: AdmissionDraft | undefined;
} {
  // One that is protected and names neither a number nor a law has a law that learns.
  const isLawLeftOut = block.isLeftOut("concurrency");
  // One that is wrong is told already; it may set a limit.
  const isWrong = !isLawLeftOut && read.concurrency === undefined;
  const { isLimited, hasSignal } = read.concurrency ?? { isLimited: isWrong, hasSignal: isWrong };
  const { concurrency: law } = read.concurrency ?? {};
  if (read.admission !== undefined) {
    refuseIdleBlocks(read.admission, { isLimited: isLimited || isLawLeftOut, hasSignal });
  }
  const asked = read.rateLimit?.data;
  if (asked !== undefined) refuseIdleRateLimit(block, asked);
  const draft = read.admission?.data;
  const written = draft && asked?.isDryRun ? withRateLimitDry(draft) : draft;
  // A law that nobody holds requests to would be a surprise.
  const isLawAlone = law !== undefined && block.isLeftOut("admission");
  const guard = isLawAlone ? { ...permitsAlone, ownOverload: undefined } : written;
  const isUsual = isLawLeftOut && guard !== undefined && guard.maxInFlight === undefined;
  return {
    rateLimit: asked?.rateLimit,
    admission: guard,
    concurrency: isUsual ? defaultConcurrency : law,
  };
}

function withRateLimitDry(draft: AdmissionDraft): AdmissionDraft {
  return { ...draft, dryRun: new Set([...draft.dryRun, "rateLimit"]) };
}

/** A limit that is driven from outside needs a filter, and a baseline that it cannot spoil. */
function refuseIdleFeedback(
  block: Block,
  { feedback }: ServiceConcurrency,
  {
    adaptive,
    isWrong,
  }: { readonly adaptive: AdaptiveConcurrencyPolicy | undefined; readonly isWrong: boolean },
): void {
  if (!feedback.includes("adaptiveConcurrency") || isWrong) return;
  if (adaptive === undefined) {
    const message = '"concurrency" drives adaptiveConcurrency, and the service has none';
    const expected = "adaptiveConcurrency: {minRtt: {fixed: 20ms}} beside it";
    block.report("concurrency", { id: "HG207", message, expected });
  } else if (adaptive.minRtt.kind === "sampled") {
    const isOwn = block.field("adaptiveConcurrency") !== undefined;
    block.report(isOwn ? "adaptiveConcurrency" : "concurrency", {
      id: "HG248",
      message: "adaptiveConcurrency is driven here, and samples its minRtt",
      expected: "adaptiveConcurrency: {minRtt: {fixed: 20ms}}",
    });
  }
}

/** Limits are only asked for, or only counted, where admission is. */
function refuseIdleRateLimit(
  block: Block,
  { rateLimit, isDryRun }: NonNullable<typeof serviceRateLimit.defaults>,
): void {
  const refuse = (why: string, expected: string): undefined =>
    block.report("rateLimit", { id: "HG207", message: `"rateLimit" ${why}`, expected });
  if (rateLimit.inExtProc && block.isLeftOut("admission")) {
    refuse("is asked for in ext_proc, where there is no admission", "admission: {} beside it");
  }
  if (isDryRun && !rateLimit.inExtProc) {
    refuse("only counts, and is not asked for here", "inExtProc: true beside dryRun");
  }
}
