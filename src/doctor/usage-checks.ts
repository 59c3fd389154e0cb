import { isPlainList, type PlainMap } from "../generate/base/plain-tree.js";
import { observesBodies, readsBodies } from "../policy/budgets/budget-policy.js";
import { quoteText } from "../policy/problems/problem.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { softAnswers } from "../policy/services/soft-answers.js";
import { type Diagnostic, type DoctorCheck, findingsOr } from "./diagnostic.js";
import type { DoctorProblemId } from "./doctor-problems.js";
import { filterName, findHeadgateFilters, type HeadgateFilter } from "./headgate-filters.js";
import { isTrueAt, mapAt, mapsAt, shownName, textAt, valueAt } from "./json-access.js";

/** Checks whether the usage of calls with budgets can be measured, and calls can be redirected. */
export const checkUsage: DoctorCheck = (input) => {
  const { policy, dump } = input;
  const filters = findHeadgateFilters(input);
  const asking = filters.filter(({ kind }) => kind === "extProc");
  const observers = filters.filter(({ kind }) => kind === "usage");
  const services = (policy?.services ?? []).filter((service) =>
    clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  if (policy === undefined || asking.length === 0) return [];
  const observed = services.filter(observesBodies);
  const read = services.filter(readsBodies);
  const routed = services.filter((service) => softAnswers(policy)(service).isRouted);
  const hostsOf = (service: ServicePolicy): readonly AskingHost[] =>
    asking.flatMap((filter) => hostsBehind(filter, service));
  return [
    ...looks({ id: "HG530", seen: "responses are shown to Headgate" }, observed, ({ name }) =>
      observers.length > 0
        ? []
        : `no filter shows Headgate the responses of ${quoteText(name)}, which report its usage`,
    ),
    ...(observed.length === 0 ? [] : checkObservers(observers)),
    ...looks(
      { id: "HG532", seen: "bodies of requests are read where the policy wants it" },
      read,
      (service) =>
        hostsOf(service).every(buffersBodies)
          ? []
          : `requests of ${quoteText(service.name)} are decided without their bodies`,
    ),
    ...looks(
      { id: "HG533", seen: "responses that are read are not compressed" },
      observed,
      (service) =>
        hostsOf(service).every(removesEncodings)
          ? []
          : `responses of ${quoteText(service.name)} may be compressed, which hides their usage`,
    ),
    ...looks({ id: "HG534", seen: "requests can fall back" }, routed, ({ name }) =>
      asking.some(keepsRoute)
        ? `requests of ${quoteText(name)} never fall back, because Envoy keeps the route`
        : [],
    ),
  ];
};

/** Returns findings of one id for services; nothing if no service needs the check. */
function looks(
  { id, seen: right }: { readonly id: DoctorProblemId; readonly seen: string },
  services: readonly ServicePolicy[],
  faultOf: (service: ServicePolicy) => string | readonly [],
): readonly Diagnostic[] {
  if (services.length === 0) return [];
  const severity = id === "HG533" ? "warning" : "error";
  const findings = services.flatMap(faultOf).map((seen): Diagnostic => {
    return { kind: "finding", id, severity, seen };
  });
  return findingsOr(findings, { id, seen: right });
}

/** Checks the configuration of filters that forward responses. */
function checkObservers(observers: readonly HeadgateFilter[]): readonly Diagnostic[] {
  const id = "HG531";
  const findings = observers.flatMap((filter) => {
    const { config } = filter;
    const modes = mapAt(config, "processing_mode");
    const faults = [
      isTrueAt(config, "observability_mode") ? [] : "makes responses wait for Headgate",
      isTrueAt(config, "failure_mode_allow") ? [] : "fails responses while Headgate is away",
      textAt(modes, "response_body_mode") === "STREAMED" ? [] : "does not send their bodies",
      forwardsNamespace(config) ? [] : "does not forward the metadata that names the reservation",
    ].flat();
    return faults.map((fault): Diagnostic => {
      const seen = `${shownName(filterName(filter))} ${fault}`;
      return { kind: "finding", id, severity: "error", seen };
    });
  });
  return findingsOr(findings, { id, seen: "the filter that shows responses is set up as needed" });
}

/** A virtual host that gives a filter the name of a service. */
interface AskingHost {
  readonly asking: HeadgateFilter;
  readonly host: PlainMap;
}

function hostsBehind(asking: HeadgateFilter, { name }: ServicePolicy): readonly AskingHost[] {
  const hosts = mapsAt(asking.chain.routes, "virtual_hosts").filter((host) =>
    Object.values(mapAt(host, "typed_per_filter_config") ?? {}).some((config) =>
      mapsAt(config, "overrides", "grpc_initial_metadata").some(
        (header) => textAt(header, "value") === name,
      ),
    ),
  );
  return hosts.map((host) => ({ asking, host }));
}

function buffersBodies({ asking: { filter, config }, host }: AskingHost): boolean {
  const own = mapAt(host, "typed_per_filter_config", filter.name, "overrides");
  const modes = mapAt(own, "processing_mode") ?? mapAt(config, "processing_mode");
  return textAt(modes, "request_body_mode")?.startsWith("BUFFERED") === true;
}

function removesEncodings({ host }: AskingHost): boolean {
  const removed = valueAt(host, "request_headers_to_remove");
  return isPlainList(removed) && removed.includes("accept-encoding");
}

function keepsRoute({ config }: HeadgateFilter): boolean {
  return (
    textAt(config, "route_cache_action") === "RETAIN" ||
    isTrueAt(config, "disable_clear_route_cache")
  );
}

function forwardsNamespace(config: PlainMap): boolean {
  const names = valueAt(config, "metadata_options", "forwarding_namespaces", "untyped");
  return isPlainList(names) && names.includes("headgate");
}
