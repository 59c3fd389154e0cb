import {
  bytes,
  duration,
  flag,
  list,
  map,
  mapForm,
  number,
  orOff,
  row,
  text,
  whole,
  words,
  written,
} from "../text/form.js";
import { portBounds, positiveRatioBounds } from "../text/quantities.js";
import { secretPattern } from "../text/service-texts.js";
import { file, label, podLabels } from "../text/text-forms.js";
import { adaptiveConcurrency } from "../upstream/adaptive-concurrency.js";
import { admissionControl } from "../upstream/admission-control.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";
import { subjectAltNameRule, subjectAltNamesMax } from "../upstream/client-tls.js";
import { tryTimeBounds } from "../upstream/retries.js";

import { tlsVersions } from "./listener-tls.js";
import {
  escapedSlashesActions,
  expectedBounds,
  gatewayListenersMax,
  gatewayProtocols,
  headersKibBounds,
  hopBounds,
  rateLimitTimeoutBounds,
  streamBounds,
} from "./proxies.js";
import { cpuWords, defaultOverload, refreshBounds } from "./proxy-overload.js";
import { defaultProxies } from "./proxy-policy.js";
import {
  cgroupOverloadShape,
  clientTlsShape,
  cpuOverloadShape,
  gatewayListenerShape,
  gatewayShape,
  headgatePlaceShape,
  http3Shape,
  listenerShape,
  listenerTlsShape,
  overloadShape,
  proxiesShape,
} from "./proxy-shapes.js";

/** A host name or IP address. */
const host = text({ charsMax: 253 });

const { headgate, listener } = defaultProxies;
const { heap, cpu, cgroupMemory } = defaultOverload;

const tlsForm = mapForm(
  { shape: clientTlsShape, docs: "TLS from proxies to Headgate.", required: ["caFile"] },
  {
    caFile: row(file, "The authorities that Headgate is trusted by, as a file of the proxy."),
    certFile: row(file, "The proxy's certificate, where Headgate asks for one."),
    keyFile: row(file, "The key of `certFile`."),
    serverName: row(host, "The name in Headgate's certificate. Usually its address."),
  },
);

const headgateForm = mapForm(
  { shape: headgatePlaceShape, docs: "Where proxies find Headgate." },
  {
    address: row(host, "A host name or an IP address.", headgate.address),
    port: row(whole(portBounds), "The port of decisions.", headgate.port),
    controlPort: row(whole(portBounds), "The port of xDS and statistics.", headgate.controlPort),
    tls: row(map(tlsForm), "TLS to it. Left out: plaintext."),
    rateLimitTimeout: row(
      duration(rateLimitTimeoutBounds),
      "How long a request waits for a rate limit's answer.",
      written(headgate.rateLimitTimeoutMs),
    ),
    failureModeDeny: row(flag, "Whether no answer means refused.", headgate.deniesWithoutAnswer),
  },
);

/** `proxies.listener.tls`. */
const listenerTlsForm = mapForm(
  {
    shape: listenerTlsShape,
    docs: "TLS at what callers reach; with authorities, callers have to show a certificate.",
    needed: [["certFile", "secret"]],
    exclusive: [
      ["secret", "certFile"],
      ["secret", "keyFile"],
      ["secret", "clientCaFile"],
      ["mutual", "certFile"],
    ],
  },
  {
    certFile: row(file, "The proxy's certificate, as a file of the proxy."),
    keyFile: row(file, "The key of `certFile`."),
    clientCaFile: row(file, "The authorities of callers, who then need a certificate."),
    secret: row(
      text({ charsMax: 253 }, secretPattern),
      "A secret with the certificate and its key, instead of files.",
    ),
    mutual: row(flag, "Whether callers need a certificate of the secret's authorities.", false),
    subjectAltNames: row(
      list(text(subjectAltNameRule), subjectAltNamesMax),
      "Names of which a caller's certificate has one: hosts, addresses, URIs. Left out: any.",
    ),
    minVersion: row(words(...tlsVersions), "The oldest version that is spoken.", "TLSv1_2"),
  },
);

const http3Form = mapForm(
  { shape: http3Shape, docs: "HTTP/3 at an edge proxy, on the UDP port of the listener's number." },
  {
    advertisedPort: row(
      whole(portBounds),
      "The port that callers are told (alt-svc), where others reach it. Left out: the listener's.",
    ),
  },
);

const listenerForm = mapForm(
  { shape: listenerShape, docs: "The listener of generated proxies." },
  {
    address: row(host, "The IP address on which callers are listened for.", listener.address),
    port: row(whole(portBounds), "Where requests come in.", listener.port),
    outboundPort: row(
      whole(portBounds),
      "Where a sidecar takes what its own service asks of others.",
      listener.outboundPort,
    ),
    adminPort: row(whole(portBounds), "Envoy's admin port, on loopback only.", listener.adminPort),
    statisticsPort: row(
      whole(portBounds),
      "Where Prometheus finds /stats/prometheus, and nothing else of the admin port.",
      listener.statisticsPort,
    ),
    maxConnections: row(
      whole(thresholdBounds),
      "Open connections of one listener.",
      listener.connectionsMax,
    ),
    maxConcurrentStreams: row(
      whole(streamBounds),
      "Streams of one HTTP/2 connection.",
      listener.concurrentStreamsMax,
    ),
    trustedHops: row(
      whole(hopBounds),
      "Proxies of yours before this one, whose x-forwarded-for is believed.",
      listener.trustedHops,
    ),
    maxRequestHeadersKb: row(
      whole(headersKibBounds),
      "KiB of a request's headers; more are answered with 431. Left out: 60.",
    ),
    maxHeadersCount: row(
      whole(thresholdBounds),
      "Headers of a request; more are answered with 431. Left out: 100.",
    ),
    maxConnectionDuration: row(
      duration(tryTimeBounds),
      "A caller's connection, which is drained then. Left out: no bound.",
    ),
    pathWithEscapedSlashesAction: row(
      words(...escapedSlashesActions),
      "What an edge proxy does with %2F and %5C in paths. Left out: unescapeAndRedirect, or as " +
        "Istio or Envoy Gateway has it by itself.",
    ),
    tls: row(map(listenerTlsForm), "TLS to it. Left out: plaintext."),
    http3: row(map(http3Form), "HTTP/3 beside HTTP/2 and HTTP/1.1; needs tls. Left out: none."),
  },
);

const gatewayListenerForm = mapForm(
  {
    shape: gatewayListenerShape,
    docs: "A listener of the Gateway for HTTP or HTTPS.",
    required: ["name", "port"],
  },
  {
    name: row(label, "Its name in the Gateway."),
    port: row(whole(portBounds), "Its port in the Gateway."),
    hostname: row(host, "Its hostname in the Gateway. Left out: all hosts."),
    protocol: row(words(...gatewayProtocols), "Its protocol in the Gateway; http3 needs it."),
  },
);

const gatewayForm = mapForm(
  { shape: gatewayShape, docs: "The gateway that objects are made for." },
  {
    name: row(label, "Its name. Left out: the policy's."),
    namespace: row(label, "Its namespace. Left out: that of the generated objects."),
    labels: row(
      podLabels,
      "Labels of the pods of Istio's gateway, for `generate istio`. Left out: " +
        "`istio: ingressgateway`.",
    ),
    listeners: row(
      list(map(gatewayListenerForm), gatewayListenersMax),
      "All of its listeners for HTTP and HTTPS, in their order. Left out: `http` on port 80 alone.",
    ),
  },
);

const cpuForm = mapForm(
  { shape: cpuOverloadShape, docs: "Refuses by the CPU that is in use." },
  {
    of: row(words(...cpuWords), "Whose CPU is meant.", cpu.of),
    shedFrom: row(
      number(positiveRatioBounds),
      "From where new requests are refused one by one.",
      cpu.shedFromRatio,
    ),
    shedAllAt: row(number(positiveRatioBounds), "From where all are.", cpu.shedAllAtRatio),
  },
);

const cgroupForm = mapForm(
  { shape: cgroupOverloadShape, docs: "Refuses by the memory of the proxy's control group." },
  {
    max: row(bytes, "The memory that is full. Usually the group's own limit."),
    stopAcceptingAt: row(
      number(positiveRatioBounds),
      "From where no requests are taken.",
      cgroupMemory.stopAcceptingAtRatio,
    ),
  },
);

const overloadForm = mapForm(
  { shape: overloadShape, docs: "Envoy's overload manager. Left out: none is written." },
  {
    refreshInterval: row(
      duration(refreshBounds),
      "Time between two looks.",
      written(defaultOverload.refreshMs),
    ),
    maxHeap: row(bytes, "The heap that is full, such as 512Mi. Left out: it is not watched."),
    shrinkHeapAt: row(
      number(positiveRatioBounds),
      "Ratio of the heap from which memory is given back.",
      heap.shrinkAtRatio,
    ),
    shedFrom: row(
      number(positiveRatioBounds),
      "Ratio of the heap from which requests are refused one by one.",
      heap.shedFromRatio,
    ),
    stopAcceptingAt: row(
      number(positiveRatioBounds),
      "Ratio of the heap from which none are taken.",
      heap.stopAcceptingAtRatio,
    ),
    maxConnections: row(whole(thresholdBounds), "Downstream connections of the process."),
    cpu: row(map(cpuForm), "Watches the CPU. Left out: not."),
    cgroupMemory: row(map(cgroupForm), "Watches the control group's memory. Left out: not."),
  },
);

/** `proxies`. */
export const proxiesForm = mapForm(
  { shape: proxiesShape, docs: "What holds for every proxy of the fleet." },
  {
    expected: row(
      whole(expectedBounds),
      "Proxies that share a limit while nobody drives them.",
      defaultProxies.expectedCount,
    ),
    headgate: row(map(headgateForm), "Where proxies find Headgate."),
    listener: row(map(listenerForm), "The listener of generated proxies."),
    gateway: row(map(gatewayForm), "The gateway that objects are made for."),
    overload: row(map(overloadForm), "Envoy's overload manager. Left out: none is written."),
    adaptiveConcurrency: row(
      orOff(adaptiveConcurrency),
      "What every service has that says nothing of it. Left out: none.",
    ),
    admissionControl: row(
      orOff(admissionControl),
      "What every service has that says nothing of it. Left out: none.",
    ),
    runbookUrl: row(
      text({ charsMax: 2_048 }, /^https?:\/\/[^#{}]+$/),
      "Where people find the runbook: alerts link to its sections, or with a `*` in the URL to a " +
        "page of that name each, unless `--runbook-url` says where. Left out: the file beside " +
        "the rules.",
    ),
    secretsFolder: row(
      file,
      "Where Envoys find the files of secrets, of which `NAME.yaml` has a certificate and " +
        "`NAME-cacert.yaml` authorities. Left out: /etc/envoy/secrets.",
    ),
  },
);
