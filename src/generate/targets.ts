import type { GenerateOptions, Generator } from "./base/generator.js";
import { generateEnvoy } from "./envoy/bootstrap/envoy.js";
import { generateGateway } from "./gateway/gateway.js";
import { generateIstio } from "./istio/istio.js";
import { generateKubernetes } from "./kubernetes/kubernetes.js";
import { generateAlerts } from "./observe/alerts.js";
import { generateDashboards } from "./observe/dashboards.js";

/** A target: its generator and what applies to it. */
interface TargetRow {
  readonly name: string;
  readonly generate: Generator;
  /** Whether it configures the proxies of services, and not Headgate or its monitoring. */
  readonly isOfProxies: boolean;
  /** Options that apply to the target. Other options are refused. */
  readonly options: readonly (keyof GenerateOptions)[];
}

/** All targets. A new target is a row here and a folder next to this file. */
const rows = [
  {
    name: "envoy",
    generate: generateEnvoy,
    isOfProxies: true,
    options: ["envoyVersion", "form", "roles"],
  },
  {
    name: "istio",
    generate: generateIstio,
    isOfProxies: true,
    options: ["istioVersion", "roles", "namespace", "existing"],
  },
  {
    name: "gateway",
    generate: generateGateway,
    isOfProxies: true,
    options: ["gatewayVersion", "namespace", "existing", "replicas", "image"],
  },
  {
    name: "kubernetes",
    generate: generateKubernetes,
    isOfProxies: false,
    options: ["namespace", "replicas", "image", "withoutClientCertificates"],
  },
  { name: "dashboards", generate: generateDashboards, isOfProxies: false, options: ["runbookUrl"] },
  {
    name: "alerts",
    generate: generateAlerts,
    isOfProxies: false,
    options: ["namespace", "replicas", "runbookUrl"],
  },
] as const satisfies readonly TargetRow[];

/** The name of a target. */
export type Target = (typeof rows)[number]["name"];

/** Every target, by name. */
export const targets: ReadonlyMap<Target, TargetRow> = new Map(rows.map((row) => [row.name, row]));

/** Names of the targets, in the order in which help lists them. */
export const targetNames: readonly Target[] = rows.map(({ name }) => name);
