import { quoteText } from "../problems/problem.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { portBounds } from "../text/quantities.js";
import { readAddress, readHost, readLabel, readPodLabels } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { readAdaptiveConcurrency } from "../upstream/adaptive-concurrency.js";
import { readAdmissionControl } from "../upstream/admission-control.js";
import { readCircuitBreakers } from "../upstream/circuit-breakers.js";
import { readUpstreamTls } from "../upstream/client-tls.js";
import { defaultUpgrades } from "../upstream/default-upstream.js";
import { readHealthChecks } from "../upstream/health-checks.js";
import { readLoadBalancing } from "../upstream/load-balancing.js";
import { readLocalRateLimit } from "../upstream/local-rate-limit.js";
import { readOutlierDetection } from "../upstream/outlier-detection.js";
import { readRetries, readTimeouts } from "../upstream/retries.js";
import type { AdaptiveConcurrencyPolicy, UpstreamProtocol } from "../upstream/upstream-policy.js";
import {
  type AdmissionDraft,
  finishAdmission,
  permitsAlone,
  readAdmission,
} from "./service-admission.js";
import { defaultConcurrency, readConcurrency } from "./service-concurrency.js";
import { type ServiceDraft, type ServiceList, servicesMax } from "./service-list.js";
import type { ServiceConcurrency, ServicePolicy } from "./service-policy.js";
import { readPriority } from "./service-priority.js";
import { type ReadRateLimit, readServiceRateLimit } from "./service-rate-limit.js";
import { serviceShape, upstreamShape, workloadShape } from "./service-shapes.js";

/** Hosts of one service. */
export const hostsMax = 64;

/** Clusters that one service may be given. */
export const clustersMax = 64;

/** Reads `services` into the list; what is wrong is reported. */
export function readServices(reader: NodeReader, field: Field, list: ServiceList): void {
  const items = reader.readList(field, "a list of services: {name: ...}");
  for (const item of items ?? []) {
    const block = Block.at(reader, item, serviceShape);
    if (block === undefined || list.add(readService(block, list))) continue;
    const message = `a policy cannot hold more than ${servicesMax} services`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}

/** A name is a whole service; what `proxies` has to do with waits until all files are read. */
function readService(block: Block, list: ServiceList): ServiceDraft {
  const name = readName(block, list);
  const namespaceField = block.field("namespace");
  const namespace = namespaceField && readLabel(block.reader, namespaceField);
  const guards = readGuards(block, list);
  const { admission, concurrency } = guards;
  const isLimited = concurrency !== undefined || admission?.maxInFlight !== undefined;
  const isWritten = !block.isLeftOut("admission") || !block.isLeftOut("concurrency");
  const timeouts = readTimeouts(block);
  const service = {
    namespace,
    hosts: readHosts(block, list),
    upstream: readUpstream(block),
    clusters: readClusters(block, list, name ?? ""),
    direction: block.choice("direction", { usual: "inbound", words: directions }),
    priority: readPriority(block, list.compiler),
    ...guards,
    circuitBreakers: readCircuitBreakers(block, isLimited || isWritten),
    outlierDetection: readOutlierDetection(block),
    healthChecks: readHealthChecks(block),
    loadBalancing: readLoadBalancing(block),
    timeouts,
    upgrades: readUpgrades(block),
    retries: readRetries(block, timeouts),
    localRateLimit: readLocalRateLimit(block),
  };
  const labels = readWorkloadLabels(block);
  refuseProbe(block, service);
  return (proxies) => {
    const adaptiveConcurrency = readAdaptiveConcurrency(block, proxies.adaptiveConcurrency);
    const admissionControl = readAdmissionControl(block, proxies.admissionControl);
    if (concurrency !== undefined) refuseIdleFeedback(block, concurrency, adaptiveConcurrency);
    if (name === undefined) return undefined;
    const workloadLabels = labels ?? { app: name };
    const finished = admission && finishAdmission(admission, proxies);
    return {
      name,
      ...service,
      admission: finished,
      workloadLabels,
      adaptiveConcurrency,
      admissionControl,
    };
  };
}

/** Envoy asks by gRPC where it speaks HTTP/2 to all hosts alone. */
function refuseProbe(
  block: Block,
  { upstream, healthChecks }: Pick<ServicePolicy, "upstream" | "healthChecks">,
): void {
  if (upstream?.protocol !== "http1" || healthChecks?.probe.kind !== "grpc") return;
  const message = '"healthChecks" ask by gRPC, which is HTTP/2, and the service speaks http1';
  block.report("healthChecks", { id: "HG207", message, expected: "protocol: http2, or http" });
}

/** Which proxies a service's protections may be in. */
export const directions = ["inbound", "outbound"] as const;

/** What Headgate itself decides by. */
function readGuards(
  block: Block,
  list: ServiceList,
): Pick<ServicePolicy, "rateLimit" | "concurrency"> & {
  readonly admission: AdmissionDraft | undefined;
} {
  const read = readServiceRateLimit(block);
  if (read !== undefined) list.claim(read.claim);
  const { concurrency, isLimited, hasSignal } = readConcurrency(block);
  // One that is protected and names neither a number nor a law has a law that learns.
  const isLawLeftOut = block.isLeftOut("concurrency");
  const written = readAdmission(block, {
    isLimited: isLimited || isLawLeftOut,
    hasSignal,
    isRateLimitDry: read?.isDryRun === true,
  });
  // A law that nobody holds requests to would be a surprise.
  const isLawAlone = concurrency !== undefined && block.isLeftOut("admission");
  const admission = isLawAlone ? { ...permitsAlone, ownOverload: undefined } : written;
  const isLawNeeded = isLawLeftOut && admission !== undefined;
  if (read !== undefined) refuseIdleRateLimit(block, read);
  const isUsual = isLawNeeded && admission.maxInFlight === undefined;
  return {
    rateLimit: read?.rateLimit,
    admission,
    concurrency: isUsual ? defaultConcurrency : concurrency,
  };
}

/** A limit that is driven from outside needs a filter, and a baseline that it cannot spoil. */
function refuseIdleFeedback(
  block: Block,
  { feedback }: ServiceConcurrency,
  adaptive: AdaptiveConcurrencyPolicy | undefined,
): void {
  if (!feedback.includes("adaptiveConcurrency")) return;
  if (adaptive === undefined) {
    if (!block.isLeftOut("adaptiveConcurrency") && !block.isOff("adaptiveConcurrency")) return;
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

const clusterRule: TextRule = {
  charsMax: 256,
  forbidden: /[^!-~]/,
  expected: "a cluster's name as Envoy has it, such as outbound|80||orders.shop.svc.cluster.local",
};

function readClusters(block: Block, list: ServiceList, service: string): readonly string[] {
  const { reader } = block;
  const items = block.items("clusters", "a list of clusters' names", clustersMax);
  const clusters = items.flatMap((item) => {
    const cluster = reader.readText(item, clusterRule);
    if (cluster === undefined) return [];
    list.claimCluster({ cluster, service, node: item.key, reader });
    return [cluster];
  });
  return [...new Set(clusters)];
}

/** Undefined where none are written. */
function readWorkloadLabels(service: Block): ServicePolicy["workloadLabels"] | undefined {
  const block = service.block("workload", workloadShape);
  if (block === undefined) return undefined;
  const expected = "the labels of its pods, such as {app: orders}";
  const field = block.reader.requiredField(block.fields, "labels", expected);
  return field && readPodLabels(block.reader, field, expected);
}

function readName(block: Block, list: ServiceList): string | undefined {
  const { reader, fields } = block;
  const field = reader.requiredField(fields, "name", "the service's name");
  const name = field && readLabel(reader, field);
  if (field === undefined || name === undefined) return undefined;
  list.takeName(name, field.value ?? field.key, reader);
  return name;
}

function readHosts(block: Block, list: ServiceList): readonly string[] {
  return block.items("hosts", "a list of hosts", hostsMax).flatMap((item) => {
    const host = readHost(block.reader, item);
    if (host === undefined) return [];
    list.takeHost(host, item.key, block.reader);
    return [host];
  });
}

/** What a service may speak. */
export const upstreamProtocols = ["http1", "http2"] as const satisfies readonly UpstreamProtocol[];

/** Protocols that one service's requests may change to. */
export const upgradesMax = 16;

/** The form of a protocol's name. Source: RFC 9110 section 7.8. */
export const upgradePattern = /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/;

const upgradeRule: TextRule = {
  charsMax: 64,
  forbidden: /[^!-~]/,
  expected: "a protocol as Upgrade names it, such as websocket or spdy/3.1",
};

/** CONNECT is no upgrade of a route: it has a match of its own, which no policy can say. */
function readUpgrades(block: Block): readonly string[] {
  if (block.field("upgrades") === undefined) return defaultUpgrades;
  const { reader } = block;
  const items = block.items("upgrades", "a list of protocols, [] for none", upgradesMax);
  const read = items.flatMap((item) => {
    const text = reader.readText(item, upgradeRule);
    const name = text?.toLowerCase();
    if (text === undefined || name === undefined) return [];
    if (name !== "connect" && upgradePattern.test(name)) return [name];
    const message = `${quoteText(text)} is not a protocol that a request changes to`;
    reader.report(item.key, { id: "HG133", message, expected: upgradeRule.expected });
    return [];
  });
  return [...new Set(read)];
}

function readUpstream(service: Block): ServicePolicy["upstream"] {
  const block = service.block("upstream", upstreamShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const addressField = reader.requiredField(fields, "address", "a host name or IP address");
  const address = addressField && readAddress(reader, addressField);
  const portField = reader.requiredField(fields, "port", "a port, 1 to 65535");
  const port = portField && reader.readWhole(portField, portBounds);
  const tls = readUpstreamTls(block, { address: address ?? "", port: port ?? 0 });
  const protocolField = block.field("protocol");
  const finding = { id: "HG133", what: "a protocol of a service" } as const;
  const protocol = protocolField && reader.readChoice(protocolField, upstreamProtocols, finding);
  if (address === undefined || port === undefined) return undefined;
  return { address, port, tls, protocol };
}

/** Limits are only asked for, or only counted, where admission is. */
function refuseIdleRateLimit(block: Block, { rateLimit, isDryRun }: ReadRateLimit): void {
  const refuse = (why: string, expected: string): undefined =>
    block.report("rateLimit", { id: "HG207", message: `"rateLimit" ${why}`, expected });
  if (rateLimit.inExtProc && block.isLeftOut("admission")) {
    refuse("is asked for in ext_proc, where there is no admission", "admission: {} beside it");
  }
  if (isDryRun && !rateLimit.inExtProc) {
    refuse("only counts, and is not asked for here", "inExtProc: true beside dryRun");
  }
}
