import { conditionCharsMax } from "../cel/cel.js";
import { any, flag, list, map, mapForm, orOff, row, text, whole, words } from "../text/form.js";
import { portBounds } from "../text/quantities.js";
import { describedHeaderPattern, secretPattern } from "../text/service-texts.js";
import { file, label, podLabels } from "../text/text-forms.js";
import { domainRule, keyRule, valueRule } from "../text/text-rules.js";
import { subjectAltNameRule, subjectAltNamesMax, systemCaFile } from "../upstream/client-tls.js";
import { retriesForm, timeoutsForm } from "../upstream/retry-forms.js";
import {
  adaptiveConcurrencyForm,
  admissionControlForm,
  circuitBreakersForm,
  healthChecksForm,
  loadBalancingForm,
  localRateLimitForm,
  outlierDetectionForm,
} from "../upstream/upstream-forms.js";
import { upstreamTlsShape } from "../upstream/upstream-shapes.js";
import { admissionForm, classWords, headerText } from "./admission-forms.js";
import { concurrencyForm } from "./concurrency-forms.js";
import {
  expressionCharsMax,
  metadataPathMax,
  metadataSources,
  partWords,
  textMatchesMax,
  v4Bounds,
  v6Bounds,
} from "./descriptor-parts.js";
import { priorityItemsMax, priorityRulesMax } from "./service-priority.js";
import {
  askTimes,
  descriptorPartsMax,
  formatPattern,
  hitsBounds,
  serviceDescriptorsMax,
} from "./service-rate-limit.js";
import {
  descriptorPartShape,
  hitsShape,
  maskShape,
  metadataPartShape,
  partSources,
  priorityFromShape,
  priorityRuleShape,
  priorityShape,
  serviceDescriptorShape,
  serviceRateLimitShape,
  serviceShape,
  textMatchShape,
  trustShape,
  upstreamShape,
  workloadShape,
} from "./service-shapes.js";
import {
  clustersMax,
  directions,
  hostsMax,
  upgradePattern,
  upgradesMax,
  upstreamProtocols,
} from "./services.js";

/** The name of a header, or of a part of the request line. */
export const describedHeader = text({ charsMax: 128 }, describedHeaderPattern);

const upstreamTls = mapForm(
  {
    shape: upstreamTlsShape,
    docs: "TLS from proxies to a service, validated. {}: by the system's authorities.",
    exclusive: [
      ["secret", "caFile"],
      ["secret", "certFile"],
      ["secret", "keyFile"],
    ],
  },
  {
    caFile: row(
      file,
      "The authorities that it is trusted by, as a file of the proxy.",
      systemCaFile,
    ),
    certFile: row(file, "The proxy's certificate, where the service asks for one."),
    keyFile: row(file, "The key of `certFile`."),
    secret: row(
      text({ charsMax: 253 }, secretPattern),
      "A secret with the authorities that it is trusted by, instead of files.",
    ),
    mutual: row(flag, "Whether the proxy shows the secret's certificate.", false),
    serverName: row(
      text({ charsMax: 253 }),
      "The name that is asked for (SNI). Usually its address.",
    ),
    subjectAltNames: row(
      list(text(subjectAltNameRule), subjectAltNamesMax),
      "Names of which the certificate has one: hosts, addresses, URIs. Usually `serverName`.",
    ),
  },
);

const upstream = mapForm(
  { shape: upstreamShape, docs: "Where a service listens.", required: ["address", "port"] },
  {
    address: row(text({ charsMax: 253 }), "A host name or an IP address."),
    port: row(whole(portBounds), "The port."),
    tls: row(orOff(upstreamTls), "TLS to it. Left out: on port 443, and on no other."),
    protocol: row(
      words(...upstreamProtocols),
      "What it speaks; gRPC needs http2. Left out: as its callers do, and behind a listener of " +
        "TLS http1, or what both sides of its own TLS agree on.",
    ),
  },
);

const workload = mapForm(
  { shape: workloadShape, docs: "Which pods serve it.", required: ["labels"] },
  { labels: row(podLabels, "Labels of the pods, for selectors.") },
);

/** A test of a header or query parameter. */
export const textMatchForm = mapForm(
  {
    shape: textMatchShape,
    docs: "A header or query parameter, and what it has to be.",
    required: ["name"],
    needed: [["exact", "prefix", "suffix", "contains", "regex", "present"]],
    exclusive: [["exact", "prefix", "suffix", "contains", "regex", "present"]],
  },
  {
    name: row(text(keyRule), "Its name."),
    exact: row(text(valueRule), "The whole text."),
    prefix: row(text(valueRule), "How it begins."),
    suffix: row(text(valueRule), "How it ends."),
    contains: row(text(valueRule), "What is in it."),
    regex: row(text({ charsMax: 1_024 }), "A regular expression of RE2 for the whole text."),
    present: row(flag, "Whatever it is, if it is there."),
  },
);

const metadataPart = mapForm(
  { shape: metadataPartShape, docs: "A text from metadata.", required: ["namespace", "path"] },
  {
    source: row(words(...metadataSources), "Whose metadata.", "dynamic"),
    namespace: row(text(keyRule), "A filter's namespace, such as envoy.filters.http.jwt_authn."),
    path: row(list(text(keyRule), metadataPathMax, 1), "The names that lead to the text."),
    default: row(text(valueRule), "The value where there is none."),
  },
);

const mask = mapForm(
  { shape: maskShape, docs: "How much of the caller's address counts." },
  {
    v4: row(whole(v4Bounds), "Bits of IPv4.", v4Bounds.max),
    v6: row(whole(v6Bounds), "Bits of IPv6.", v6Bounds.max),
  },
);

const part = mapForm(
  {
    shape: descriptorPartShape,
    docs: "One entry of a descriptor, and what it is made from.",
    exclusive: [[...partSources], ["maskedRemoteAddress", "as"], ["header", "value"]],
    needed: [
      [...partSources, "value"],
      ["as", "maskedRemoteAddress"],
    ],
  },
  {
    header: row(describedHeader, "The value of a request header, `:path` and the like among them."),
    query: row(text(keyRule), "The value of a query parameter."),
    headerMatch: row(
      list(map(textMatchForm), textMatchesMax, 1),
      "`value`, where the headers are as this says.",
    ),
    queryMatch: row(
      list(map(textMatchForm), textMatchesMax, 1),
      "`value`, where the query parameters are as this says.",
    ),
    metadata: row(map(metadataPart), "A text from dynamic metadata or from the route's."),
    cel: row(text({ charsMax: expressionCharsMax }), "A CEL expression over Envoy's attributes."),
    maskedRemoteAddress: row(map(mask), "The caller's network; Envoy gives it its key."),
    value: row(text(valueRule), "A fixed value; with a match, the value where it matches."),
    expectMatch: row(flag, "Whether the match must hold, or must not.", true),
    as: row(text(keyRule), "The key that the entry has in `rateLimits`."),
  },
);

const parts = list(any(words(...partWords), map(part)), descriptorPartsMax, 1);

const hits = mapForm(
  { shape: hitsShape, docs: "Hits that Envoy finds.", required: ["format"] },
  { format: row(text({ charsMax: 256 }, formatPattern), "A command operator: %BYTES_RECEIVED%.") },
);

const descriptor = mapForm(
  {
    shape: serviceDescriptorShape,
    docs: "A descriptor, and what it costs.",
    required: ["entries"],
  },
  {
    entries: row(parts, "Its parts, in order."),
    hits: row(any(whole(hitsBounds), map(hits)), "How many hits it costs.", 1),
    refund: row(flag, "Gives the hits back.", false),
    when: row(words(...askTimes), "With the request, or when its response has ended.", "request"),
  },
);

const rateLimit = mapForm(
  {
    shape: serviceRateLimitShape,
    docs: "The limits of `rateLimits` that this service's requests are charged by.",
    required: ["domain", "descriptors"],
  },
  {
    domain: row(text(domainRule), "A domain of `rateLimits`."),
    descriptors: row(
      list(any(parts, map(descriptor)), serviceDescriptorsMax),
      "What is asked for each request; one whose part is missing is left out.",
    ),
    inExtProc: row(flag, "ext_proc asks for them, so that Envoy needs no call of its own.", false),
    dryRun: row(flag, "Counts, and refuses nobody.", false),
  },
);

const trust = mapForm(
  {
    shape: trustShape,
    docs: "Whose word on a request's class is taken.",
    exclusive: [
      ["anyone", "sources"],
      ["anyone", "principals"],
    ],
  },
  {
    anyone: row(flag, "Everybody's.", false),
    sources: row(list(text({ charsMax: 64 }), priorityItemsMax), "Networks of callers."),
    principals: row(
      list(text({ charsMax: 1_024 }), priorityItemsMax),
      "URIs in client certificates; a `*` at the end stands for any rest.",
    ),
  },
);

const priorityFrom = mapForm(
  { shape: priorityFromShape, docs: "The header that states a request's class." },
  {
    header: row(headerText, "Its name.", "x-request-priority"),
    default: row(classWords, "The class of a request that nothing is said of.", "normal"),
    trust: row(map(trust), "Whose word is taken. Left out: nobody's."),
  },
);

const priorityRule = mapForm(
  { shape: priorityRuleShape, docs: "A condition and its class.", required: ["when", "is"] },
  {
    when: row(text({ charsMax: 16 * conditionCharsMax }), "A CEL condition over the request."),
    is: row(classWords, "The class it gives."),
  },
);

const paths = list(text({ charsMax: 1_024 }, /^\//), priorityItemsMax);

const priority = mapForm(
  { shape: priorityShape, docs: "Who goes first when not all can." },
  {
    from: row(map(priorityFrom), "The header that states a class, and who is believed."),
    rules: row(list(map(priorityRule), priorityRulesMax), "The first that holds gives the class."),
    bypassPaths: row(
      paths,
      "Paths that are neither counted nor refused, such as /healthz; /static/* with all below it.",
    ),
    authPaths: row(paths, "Paths, also with /*, that are critical where nothing else says so."),
  },
);

/** An item of `services`. */
export const serviceForm = mapForm(
  {
    shape: serviceShape,
    docs: "A service, and what protects it. A name is a whole service.",
    required: ["name"],
  },
  {
    name: row(label, "Names it in requests, metrics and generated configuration."),
    namespace: row(label, "Its namespace in Kubernetes."),
    hosts: row(list(text({ charsMax: 253 }), hostsMax), "Values of `:authority` that mean it."),
    upstream: row(map(upstream), "Where it listens. Left out: only Envoy knows."),
    clusters: row(
      list(text({ charsMax: 256 }), clustersMax),
      "Further clusters of Envoys that lead to it, beside those named by it and its upstream.",
    ),
    workload: row(map(workload), "Which pods serve it. Usually those labelled `app: <name>`."),
    direction: row(
      words(...directions),
      "Which Envoys protect it: those before it, or those of its callers.",
      "inbound",
    ),
    rateLimit: row(map(rateLimit), "The limits that its requests are charged by. Left out: none."),
    priority: row(map(priority), "Who goes first when not all can."),
    admission: row(map(admissionForm), "What a request has to pass. Left out: nothing."),
    concurrency: row(map(concurrencyForm), "The law that sets its limit."),
    circuitBreakers: row(map(circuitBreakersForm), "What one proxy may have open to it."),
    outlierDetection: row(orOff(outlierDetectionForm), "When a host of it is left out."),
    healthChecks: row(
      map(healthChecksForm),
      "How each proxy asks hosts whether they are well. Left out: it does not.",
    ),
    loadBalancing: row(map(loadBalancingForm), "How hosts are chosen."),
    retries: row(map(retriesForm), "What is tried again. Left out: nothing."),
    timeouts: row(map(timeoutsForm), "How long what may take."),
    upgrades: row(
      list(text({ charsMax: 64 }, upgradePattern), upgradesMax),
      "Protocols that a request may change to. Left out: websocket; []: none.",
    ),
    localRateLimit: row(map(localRateLimitForm), "A backstop in each proxy. Left out: none."),
    adaptiveConcurrency: row(
      orOff(adaptiveConcurrencyForm),
      "Envoy's own gradient controller. Left out: as `proxies` says.",
    ),
    admissionControl: row(
      orOff(admissionControlForm),
      "Envoy's admission control. Left out: as `proxies` says.",
    ),
  },
);
