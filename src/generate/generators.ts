import type { Generator, Target } from "./base/generator.js";
import { generateEnvoy } from "./envoy/bootstrap/envoy.js";
import { generateGateway } from "./gateway/gateway.js";
import { generateIstio } from "./istio/istio.js";
import { generateKubernetes } from "./kubernetes/kubernetes.js";
import { generateAlerts } from "./observe/alerts.js";
import { generateDashboards } from "./observe/dashboards.js";

/** What makes the documents of each target; a target without one is not there yet. */
export const generators: Readonly<Partial<Record<Target, Generator>>> = {
  envoy: generateEnvoy,
  istio: generateIstio,
  gateway: generateGateway,
  kubernetes: generateKubernetes,
  dashboards: generateDashboards,
  alerts: generateAlerts,
};
