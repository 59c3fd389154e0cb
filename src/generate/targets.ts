import type { GenerateOptions, Generator } from "./base/generator.js";
import { generateEnvoy } from "./envoy/bootstrap/envoy.js";
import { generateGateway } from "./gateway/gateway.js";
import { generateIstio } from "./istio/istio.js";
import { generateKubernetes } from "./kubernetes/kubernetes.js";
import { generateAlerts } from "./observe/alerts.js";
import { generateDashboards } from "./observe/dashboards.js";

/** What is generated for one target. */
interface TargetRow {
  readonly name: string;
  readonly generate: Generator;
  /** Whether it configures the proxies before services, and not Headgate or what watches it. */
  readonly isOfProxies: boolean;
  /** The options that mean something to it; others are refused where they are given. */
  readonly options: readonly (keyof GenerateOptions)[];
}

/** Every target; one more is a row here and a folder beside this file. */
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

/** The names, as help lists them. */
export const targetNames: readonly Target[] = rows.map(({ name }) => name);
