import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { rated } from "../../base/generate-problems.js";
import type { GenerateProblem, Generator, TargetProblem } from "../../base/generator.js";
import { isAddress } from "../base/domains.js";
import { planProxies } from "../base/proxies.js";
import { secretFiles } from "../base/secrets.js";
import { type MetadataPlace, reportMetadata } from "../http/metadata-needs.js";
import { bootstrap } from "./bootstrap.js";
import { fragments } from "./fragments.js";

/** Generates complete Envoys, or fragments for existing ones, from a policy's proxy settings. */
export const generateEnvoy: Generator = (policy, options) => {
  const problems = new Map<string, GenerateProblem>();
  // Each caller's sidecar would repeat the problems of the services that it calls.
  const report = (problem: TargetProblem): void => {
    problems.set(JSON.stringify(problem), rated(problem));
  };
  if (policy.services.length === 0 && policy.proxies.tcpListeners.length === 0) {
    report({
      id: "HG304",
      spot: { service: undefined, path: ["services"] },
      message: "the policy has no services, so a proxy has nowhere to send requests",
      hint: "add services: [{name, upstream: {address, port}}], with rateLimit where it applies",
    });
  }
  const { address } = policy.proxies.listener;
  if (!isAddress(address)) {
    report({
      id: "HG305",
      spot: { service: undefined, path: ["proxies", "listener", "address"] },
      message: "proxies do not resolve the address that they listen on",
      hint: "an IP address, such as 0.0.0.0 for all addresses, or 127.0.0.1",
    });
  }
  const plans = planProxies(policy, options, report);
  const isWhole = options.form === "bootstrap";
  const metadata: MetadataPlace = {
    isClosed: true,
    who: "a complete proxy has no filter that sets it",
    hint: "--form fragments, next to your filter that sets it",
    report,
  };
  if (isWhole) {
    for (const service of policy.services) {
      reportMetadata(service, metadata);
      reportZones(service, report);
    }
  }
  const documents = plans.flatMap((plan) => [
    ...(isWhole ? [bootstrap(plan)] : fragments(plan)),
    ...secretFiles(plan),
  ]);
  return { documents, problems: [...problems.values()] };
};

/** Hosts from DNS have no zone, and our proxies know no other proxies of their kind. */
function reportZones(
  { name, loadBalancing }: ServicePolicy,
  report: (problem: TargetProblem) => void,
): void {
  if (loadBalancing.zoneAware === undefined) return;
  report({
    id: "HG307",
    spot: { service: name, path: ["loadBalancing", "zoneAware"] },
    message: "hosts of a DNS name have no zones, so the setting has no effect in a complete proxy",
    hint: "--form fragments, for an EDS cluster in a proxy that knows its own zone",
  });
}
