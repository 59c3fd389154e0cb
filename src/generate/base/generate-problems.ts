import type { ProblemRow } from "../../policy/problems/problem-row.js";
import { documentProblemRows } from "./document-problems.js";

/**
 * Policies that a target cannot express. HG301 to HG319: Envoy's structure; to HG339: its filters;
 * to HG359: Istio and Envoy Gateway; to HG379: Kubernetes; to HG399: dashboards and alerts.
 */
const targetProblemRows = {
  HG301: {
    title: "A proxy should route to a service whose address is unknown.",
    remedy: "Add `upstream: {address, port}`, or generate fragments.",
  },
  HG302: {
    title: "A service without an address gets no cluster in the fragments.",
    remedy: "Add `upstream`, or add breakers and outlier detection to your cluster yourself.",
    severity: "warning",
  },
  HG303: {
    title: "One host belongs to two services.",
    remedy: "Give each service its own hosts. Ports do not distinguish services.",
  },
  HG304: {
    title: "The policy has no service that a proxy could route to.",
    remedy: "Add `services`, each with a name and an upstream.",
  },
  HG305: {
    title: "A proxy cannot listen on a host name.",
    remedy: "Set `proxies.listener.address` to an IP address.",
  },
  HG306: {
    title: "A limit uses metadata that nothing sets.",
    remedy:
      "Generate with `--form fragments` and put them next to the filter that sets " +
      "the metadata (jwt_authn, json_to_metadata). In Istio, add such a filter " +
      "before. Or build the limit from headers.",
    severity: "either",
  },
  HG307: {
    title: "A complete proxy does not know the zones of hosts.",
    remedy:
      "Use `--form fragments` and merge the cluster into an EDS cluster. The proxy " +
      "needs `node.locality` and `cluster_manager.local_cluster_name`. Or leave " +
      "`zoneAware` out.",
  },
  HG321: {
    title: "The target version of Envoy does not support this.",
    remedy: "Choose a later `--envoy-version`, or leave the setting out.",
  },
  HG322: {
    title: "Services of one listener have different adaptive concurrency settings.",
    remedy: "Set it once under `proxies`, or generate a sidecar for each service.",
  },
  HG323: {
    title: "Services of one listener have different admission control settings.",
    remedy: "Set it once under `proxies`, or generate a sidecar for each service.",
  },
  HG324: {
    title: "Several services drive the single limit of a proxy.",
    remedy: "Send their limits to `circuitBreakers`.",
  },
  HG325: {
    title: "Proxies cannot turn visitors of a waiting room away by themselves.",
    remedy:
      "Let visitors bypass the room by headers instead of `sources` and `priorities`, " +
      "and name fewer paths. Until then, the gate acts in Headgate alone.",
    severity: "warning",
  },
  HG326: {
    title: "A sidecar has no cluster to which requests should fall back.",
    remedy:
      "Generate an edge proxy, or fragments next to your own clusters. Or use " +
      "`fallback: {header: ...}`, and let the service choose.",
    severity: "warning",
  },
  HG340: {
    title: "A service has no name that a mesh knows.",
    remedy: "Set `upstream.address` to the service's full host name, and set its port.",
  },
  HG341: {
    title: "The target version does not support retry budgets.",
    remedy:
      "Choose a later version, or set `retryBudget: off` and bound retries with `maxRetries`.",
  },
  HG342: {
    title: "Headgate has no name that a mesh knows.",
    remedy: "Set `proxies.headgate.address` to a full host name.",
  },
  HG343: {
    title: "A gateway cannot tell which requests belong to a service.",
    remedy: "Set `hosts` of the service.",
    severity: "either",
  },
  HG344: {
    title: "A sidecar cannot tell which requests belong to a service.",
    remedy:
      'Add the sidecar\'s own cluster to `clusters`, such as `"inbound|8080||"` with its port.',
    severity: "either",
  },
  HG345: {
    title: "Headgate does not know a breaker that it should drive.",
    remedy: "Add the cluster in the message to `clusters`, or set `direction: outbound`.",
  },
  HG346: {
    title: "Headgate cannot tell apart the sidecars of two services.",
    remedy: "Give their containers different ports, or set `direction: outbound`.",
  },
  HG347: {
    title: "Routes of a gateway have their own timeouts and retries.",
    remedy:
      "Set what the message names in their VirtualServices, or pass their files " +
      "with `--with`. A patch would replace the settings of their other routes.",
    severity: "warning",
  },
  HG348: {
    title: "TLS is configured for a host that is not a Service of the cluster.",
    remedy: "Configure `tls` on your Backend, or set `upstream: {tls: off}` for plaintext.",
    severity: "warning",
  },
  HG349: {
    title: "Your object differs from the policy.",
    remedy:
      "Headgate keeps your setting. Remove it to get the policy's value, or set " +
      "the same value in the policy.",
    severity: "warning",
  },
  HG350: {
    title: "The target version of Envoy Gateway does not support this.",
    remedy: "Choose a later `--gateway-version`, or leave the setting out.",
  },
  HG351: {
    title: "Passive health checks in Envoy Gateway support fewer settings.",
    remedy: "Leave `successRate` and `maxEjectionTime` out.",
  },
  HG352: {
    title: "Envoy Gateway cannot retry refused requests after Retry-After.",
    remedy: "Leave `rateLimited` out of `retryOn`.",
  },
  HG353: {
    title: "Envoy Gateway's own rate limits cannot express a limit.",
    remedy:
      "Write the limit as a number of requests per unit. Or set `inExtProc: true` " +
      "with `admission`, if the limit uses only the address, headers and fixed " +
      "values.",
  },
  HG354: {
    title: "Headgate has no name that Envoy Gateway knows.",
    remedy: "Set `proxies.headgate.address` to the name of a Service in the cluster.",
  },
  HG355: {
    title: "An HTTPRoute has to lead requests that fall back to another cluster.",
    remedy:
      "Add the rule in the message to the HTTPRoute, before its others. A patched route would go " +
      "past the authentication of your routes.",
    severity: "warning",
  },
  HG356: {
    title: "Envoy Gateway limits the connections of a process itself.",
    remedy: "Leave `overload.maxConnections` out, and use `listener.maxConnections`.",
  },
  HG357: {
    title: "A memory limit on the gateway's pods would add a second heap monitor.",
    remedy:
      "Set no memory limit in the EnvoyProxy, or leave `overload.heap` out. Envoy " +
      "rejects both together.",
    severity: "warning",
  },
  HG359: {
    title: "Istio, Envoy Gateway, or the chosen version does not support an Envoy option.",
    remedy:
      'See "Options by target" for what each target supports. Leave the option out, ' +
      "or choose another target.",
  },
  HG360: {
    title: "A policy is too large for a ConfigMap.",
    remedy: "Serve it from a control plane (CONFIG_TYPE=GRPC_XDS_SOTW), or mount a volume.",
  },
  HG361: {
    title: "A port is already in use in the pods.",
    remedy:
      "Set `port` and `controlPort` of `proxies.headgate` to numbers other than 8080 and 8083.",
  },
  HG362: {
    title: "Proxies call an address that no generated Service has.",
    remedy: "Correct `proxies.headgate.address`, or generate for the namespace in it.",
    severity: "warning",
  },
  HG363: {
    title: "A single replica keeps all counts in its own memory.",
    remedy: "Use two replicas or more. They share a Redis.",
    severity: "warning",
  },
  HG364: {
    title: "Proxies present no certificate.",
    remedy:
      "Set `caFile`, `certFile` and `keyFile` of `proxies.headgate.tls`. Or choose " +
      "`--without-client-certificates`; then anyone who reaches the pods can act " +
      "as a proxy.",
  },
  HG365: {
    title: "Classes have too many conditions to express as routes.",
    remedy: "Write fewer rules with several conditions. Until then, only Headgate sheds the class.",
    severity: "warning",
  },
  HG366: {
    title: "Next to your own routes, paths and classes get no routes of their own.",
    remedy:
      "Set `rateLimit: {inExtProc: true}` with `admission`, so that Headgate " +
      "exempts bypassed paths from limits. Let `admission` refuse by class, " +
      "because breakers cannot.",
    severity: "warning",
  },
  HG367: {
    title: "The policy does not name the listeners of a Gateway.",
    remedy:
      "List in `proxies.gateway.listeners` all listeners that serve the services, " +
      "with their ports. Quotas, admission and local replies are patched into each " +
      "listener by name.",
  },
  HG368: {
    title: "The settings of a sidecar apply to every port of the pods.",
    remedy:
      'Name the container port by its cluster: `clusters: ["inbound|8080||"]`. ' +
      "Otherwise its limits and admission apply to the other ports as well.",
    severity: "warning",
  },
  HG369: {
    title: "The output cannot be merged into your objects.",
    remedy:
      "Use one object of a kind for each host or target, and only for that one. " +
      "Give other objects other names.",
  },
  HG370: {
    title: "A file of `--with` contains something other than Kubernetes objects.",
    remedy: "Pass YAML or JSON objects with `apiVersion`, `kind` and `metadata`, at most 1 MiB.",
  },
  HG380: {
    title: "Alerts link to a runbook that on-call cannot open.",
    remedy: "Publish `runbook.md`, and set its URL in `proxies.runbookUrl`.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/**
 * All problems that can be reported when configuration is generated from a policy. The table in the
 * docs is made from these rows. An id never changes its meaning.
 */
export const generateProblemRows = { ...targetProblemRows, ...documentProblemRows } as const;

type Rows = typeof generateProblemRows;

/** A row's name. */
export type GenerateProblemId = keyof Rows;

/** Severity of a problem. If there is an error, nothing is written. */
export type Severity = "error" | "warning";

type EitherId = {
  [Id in GenerateProblemId]: Rows[Id] extends { readonly severity: "either" } ? Id : never;
}[GenerateProblemId];

/** The id of a problem, and its severity if the row does not define it. */
export type RatedId =
  | { readonly id: Exclude<GenerateProblemId, EitherId>; readonly severity?: never }
  | { readonly id: EitherId; readonly severity: Severity };

/** Adds the severity to a problem. */
export function rated<Problem extends RatedId>(
  problem: Problem,
): Omit<Problem, "severity"> & { readonly severity: Severity } {
  const row: ProblemRow = generateProblemRows[problem.id];
  const severity = problem.severity ?? (row.severity === "warning" ? "warning" : "error");
  return { ...problem, severity };
}
