import type { ProblemRow } from "../../policy/problems/problem-row.js";
import { documentProblemRows } from "./document-problems.js";

/**
 * What a target cannot express. HG301 to HG319: Envoy's structure; to HG339: its filters; to HG359:
 * Istio and Envoy Gateway; to HG379: Kubernetes; to HG399: dashboards and alerts.
 */
const targetProblemRows = {
  HG301: {
    title: "A proxy is to lead to a service whose address is unknown.",
    remedy: "Add `upstream: {address, port}`, or generate fragments.",
  },
  HG302: {
    title: "A service without an address has no cluster among the fragments.",
    remedy: "Add `upstream`, or put breakers and outlier detection into your cluster by hand.",
    severity: "warning",
  },
  HG303: {
    title: "One host leads to two services.",
    remedy: "Give each of them hosts of its own; a port does not tell them apart.",
  },
  HG304: {
    title: "There is no service that a proxy could lead to.",
    remedy: "Add `services`, each with a name and an upstream.",
  },
  HG305: {
    title: "A proxy cannot listen on a name.",
    remedy: "Give `proxies.listener.address` an IP address.",
  },
  HG306: {
    title: "Limits by metadata that nothing sets.",
    remedy:
      "Put them beside the filter that sets it (jwt_authn, json_to_metadata): by `--form " +
      "fragments`, or in Istio by a filter of yours before; or build the limit of headers.",
    severity: "either",
  },
  HG307: {
    title: "A whole proxy finds no zones of hosts.",
    remedy:
      "Take `--form fragments` and merge the cluster into one of EDS; the proxy needs " +
      "`node.locality`, and `cluster_manager.local_cluster_name`. Or leave `zoneAware` out.",
  },
  HG321: {
    title: "The Envoy that is generated for does not have it yet.",
    remedy: "Choose a later `--envoy-version`, or leave it out.",
  },
  HG322: {
    title: "Services of one listener differ in adaptive concurrency.",
    remedy: "Say it once under `proxies`, or generate a sidecar for each service.",
  },
  HG323: {
    title: "Services of one listener differ in admission control.",
    remedy: "Say it once under `proxies`, or generate a sidecar for each service.",
  },
  HG324: {
    title: "Several services pin the one limit of a proxy.",
    remedy: "Send their limits to `circuitBreakers`.",
  },
  HG340: {
    title: "A mesh has no name for a service.",
    remedy: "Give `upstream.address` the service's full host name, and its port.",
  },
  HG341: {
    title: "The version that is generated for has no retry budgets.",
    remedy: "Choose a later version, or say `retryBudget: off` and bound retries by `maxRetries`.",
  },
  HG342: {
    title: "A mesh has no name for Headgate.",
    remedy: "Give `proxies.headgate.address` a full host name.",
  },
  HG343: {
    title: "A gateway cannot tell a service's requests from others.",
    remedy: "Name the service's `hosts`.",
    severity: "either",
  },
  HG344: {
    title: "A sidecar cannot tell a service's requests apart.",
    remedy:
      'Add the sidecar\'s own cluster to `clusters`, such as `"inbound|8080||"` with its port.',
    severity: "either",
  },
  HG345: {
    title: "Headgate does not know a breaker that it is to drive.",
    remedy: "Add the cluster that the message names to `clusters`, or say `direction: outbound`.",
  },
  HG346: {
    title: "Headgate cannot tell the sidecars of two services apart.",
    remedy: "Give their containers ports of their own, or say `direction: outbound`.",
  },
  HG347: {
    title: "Routes of a gateway have times and retries of their own.",
    remedy:
      "Say in their VirtualServices what the message names, or name their files in `--with`: a " +
      "patch would replace what their other routes say.",
    severity: "warning",
  },
  HG348: {
    title: "TLS is to be spoken to what is no Service of the cluster.",
    remedy: "Give your Backend its `tls`, or say `upstream: {tls: off}` where plaintext is meant.",
    severity: "warning",
  },
  HG349: {
    title: "An object of yours says something else than the policy.",
    remedy:
      "Yours stays. Leave the setting out of it, and the policy's is put there; or say the same " +
      "in the policy.",
    severity: "warning",
  },
  HG350: {
    title: "The Envoy Gateway that is generated for does not have it yet.",
    remedy: "Choose a later `--gateway-version`, or leave it out.",
  },
  HG351: {
    title: "Envoy Gateway's passive health checks are simpler.",
    remedy: "Leave `successRate` and `maxEjectionTime` out.",
  },
  HG352: {
    title: "Envoy Gateway cannot try refusals again when they say so.",
    remedy: "Leave `rateLimited` out of `retryOn`.",
  },
  HG353: {
    title: "Envoy Gateway's own rate limits have no words for a limit.",
    remedy:
      "Write the limit as a number of requests a unit of time; or say `inExtProc: true` beside " +
      "`admission`, where all that it goes by are the address, headers and fixed values.",
  },
  HG354: {
    title: "Envoy Gateway has no name for Headgate.",
    remedy: "Give `proxies.headgate.address` the name of a Service of the cluster.",
  },
  HG356: {
    title: "Envoy Gateway bounds the connections of a process itself.",
    remedy: "Leave `overload.maxConnections` out, and use `listener.maxConnections`.",
  },
  HG357: {
    title: "A memory limit on a gateway's pods would add a second monitor of the heap.",
    remedy:
      "Set no memory limit in the EnvoyProxy, or leave `overload.heap` out: Envoy refuses both.",
    severity: "warning",
  },
  HG359: {
    title: "Istio, Envoy Gateway or the version of it has no words for an option of Envoy.",
    remedy: 'See which target has what, under "Options by target"; leave it out, or take another.',
  },
  HG360: {
    title: "A policy is too large for a ConfigMap.",
    remedy: "Let a control plane hand it out (CONFIG_TYPE=GRPC_XDS_SOTW), or mount a volume.",
  },
  HG361: {
    title: "A port of the pods is taken.",
    remedy: "Give `port` and `controlPort` of `proxies.headgate` other numbers than 8080 and 8083.",
  },
  HG362: {
    title: "Proxies ask at an address that no generated Service has.",
    remedy: "Correct `proxies.headgate.address`, or choose the namespace that it names.",
    severity: "warning",
  },
  HG363: {
    title: "One replica keeps what it counts in itself.",
    remedy: "Choose two replicas or more; they share a Redis.",
    severity: "warning",
  },
  HG364: {
    title: "Proxies show no certificate.",
    remedy:
      "Give `proxies.headgate.tls` a `caFile`, a `certFile` and a `keyFile`, or choose " +
      "`--without-client-certificates`: whoever reaches the pods then asks like a proxy.",
  },
  HG365: {
    title: "Classes have too many conditions for routes.",
    remedy: "Write fewer rules of several conditions; until then Headgate alone sheds the class.",
    severity: "warning",
  },
  HG366: {
    title: "Beside routes of yours paths and classes have none of their own.",
    remedy:
      "Say `rateLimit: {inExtProc: true}` beside `admission`, and Headgate leaves bypassed paths " +
      "out of the limits; let `admission` refuse by class, where breakers cannot.",
    severity: "warning",
  },
  HG367: {
    title: "A Gateway's listeners are not named.",
    remedy:
      "Name in `proxies.gateway.listeners` all that serve the services, with their ports: what " +
      "Envoy Gateway has no words for (quotas, admission, local replies) is patched at each by " +
      "its name.",
  },
  HG368: {
    title: "A sidecar's settings act on every port of the pods.",
    remedy:
      'Name the container\'s port by its cluster: `clusters: ["inbound|8080||"]`. Otherwise ' +
      "limits and admission of one port hold for the others as well.",
    severity: "warning",
  },
  HG369: {
    title: "What is generated cannot be merged into objects of yours.",
    remedy:
      "Have one object of a kind for a host or target, and for no other beside; give those for " +
      "something else other names.",
  },
  HG370: {
    title: "A file of `--with` holds something else than objects of a cluster.",
    remedy:
      "Hand in YAML or JSON of objects with `apiVersion`, `kind` and `metadata`, at most 1 MiB " +
      "of it.",
  },
  HG380: {
    title: "Alerts link to a runbook that nobody can open from there.",
    remedy: "Put `runbook.md` where people find it, and say where in `proxies.runbookUrl`.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/**
 * What a policy can be told when it becomes configuration; the docs' table is these rows. An id
 * keeps its meaning.
 */
export const generateProblemRows = { ...targetProblemRows, ...documentProblemRows } as const;

/** A row's name. */
export type GenerateProblemId = keyof typeof generateProblemRows;
