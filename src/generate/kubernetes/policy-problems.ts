import type { GeneratedPolicy, GenerateOptions, TargetProblem } from "../base/generator.js";
import { podPorts } from "./container.js";
import { configMapBytes, configMapBytesMax, policyFiles } from "./policy-files.js";
import type { PolicyNeeds } from "./policy-needs.js";
import { namespaceInHost } from "./signal-egress.js";

/** Reports policies that manifests cannot or should not express. */
export function manifestProblems(
  policy: GeneratedPolicy,
  options: GenerateOptions,
  needs: PolicyNeeds,
): readonly TargetProblem[] {
  return [
    ...sizeProblems(policy),
    ...portProblems(policy),
    ...addressProblems(policy, options),
    ...unsharedProblems(options, needs),
    ...certificateProblems(options, needs),
  ];
}

function sizeProblems({ texts }: GeneratedPolicy): readonly TargetProblem[] {
  const bytes = configMapBytes(policyFiles(texts));
  if (bytes <= configMapBytesMax) return [];
  return [
    {
      id: "HG360",
      spot: { service: undefined, path: [] },
      message: `a policy of ${bytes} bytes does not fit into a ConfigMap (${configMapBytesMax})`,
      hint: "let a control plane hand it out (CONFIG_TYPE=GRPC_XDS_SOTW), or mount a volume",
    },
  ];
}

/** The policy's reader has already checked that the two ports of proxies differ. */
function portProblems({ proxies }: GeneratedPolicy): readonly TargetProblem[] {
  const { port, controlPort } = proxies.headgate;
  const ports: readonly (readonly [string, number])[] = [
    ["port", port],
    ["controlPort", controlPort],
  ];
  return ports
    .filter(([, number]) => podPorts.includes(number))
    .map(([name, number]) => ({
      id: "HG361",
      spot: { service: undefined, path: ["headgate", name] },
      message: `port ${number} of the pods is already used by HTTP, or by health and metrics`,
      hint: `choose a port other than ${podPorts.join(" and ")}`,
    }));
}

/** Warns about proxies that use another address than that of these Services. */
function addressProblems(
  { proxies }: GeneratedPolicy,
  { namespace }: GenerateOptions,
): readonly TargetProblem[] {
  const { address } = proxies.headgate;
  const inCluster = namespaceInHost(address);
  const [name = ""] = address.split(".");
  const isOurs = ["headgate", "headgate-pods"].includes(name) && inCluster === namespace;
  // Names that are not a Service's may lead here by other means.
  if (inCluster === undefined || isOurs) return [];
  return [
    {
      id: "HG362",
      spot: { service: undefined, path: ["headgate", "address"] },
      message: "proxies call an address that none of these Services has",
      hint:
        `use headgate-pods.${namespace}.svc.cluster.local (in a mesh headgate), or ` +
        "--namespace",
    },
  ];
}

function unsharedProblems(
  { replicas }: GenerateOptions,
  { hasSharedState }: PolicyNeeds,
): readonly TargetProblem[] {
  if (replicas > 1 || !hasSharedState) return [];
  return [
    {
      id: "HG363",
      spot: { service: undefined, path: [] },
      message: "a single replica keeps its counts in memory, and loses them when it is replaced",
      hint: "use --replicas 2 or more: they share a Redis, and one of them is always available",
    },
  ];
}

/** To serve proxies without authentication must be an explicit choice, not a default. */
function certificateProblems(
  { withoutClientCertificates }: GenerateOptions,
  { asksForCertificates }: PolicyNeeds,
): readonly TargetProblem[] {
  if (asksForCertificates || withoutClientCertificates) return [];
  return [
    {
      id: "HG364",
      spot: { service: undefined, path: ["headgate"] },
      message: "proxies present no certificate: anyone who reaches the pods could act as a proxy",
      hint:
        "set caFile, certFile and keyFile in headgate.tls; or choose " +
        "--without-client-certificates, if a mesh controls access",
    },
  ];
}
