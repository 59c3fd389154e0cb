import type { ParsedNode } from "yaml";
import type { Rule } from "../../core/limits/limit.js";
import type { MeasuredService } from "../budgets/budget-draft.js";
import { quoteText } from "../problems/problem.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import { DefinedNames } from "../text/defined-names.js";
import { findNearestName } from "../text/nearest-name.js";
import type { NodeReader } from "../text/node-reader.js";
import { warnOfCosts } from "./limit-costs.js";
import { LimitPaths } from "./limit-paths.js";
import { indexClusters } from "./service-clusters.js";
import type { ServicePolicy } from "./service-policy.js";
import type { RateLimitClaim } from "./service-rate-limit.js";

/** Maximum number of services of one policy. */
export const servicesMax = 1_000;

/** Finishes a service when all files are read; undefined for one without a name. */
export type ServiceDraft = (proxies: ProxyPolicy) => ServicePolicy | undefined;

/** A cluster that the policy assigns to a service, and its place. */
interface ClusterClaim {
  readonly cluster: string;
  readonly service: string;
  readonly node: ParsedNode;
  readonly reader: NodeReader;
}

/** The services of a policy while it is read, from all its files. */
export class ServiceList {
  readonly #drafts: ServiceDraft[] = [];
  readonly #clusterClaims: ClusterClaim[] = [];
  readonly #measured: MeasuredService[] = [];
  readonly #claims: RateLimitClaim[] = [];
  readonly named = new DefinedNames(
    "HG220",
    (name) => `a service named ${name} is already defined`,
  );
  /** Hosts. Each belongs to one service. */
  readonly hosts = new DefinedNames("HG221", (host) => {
    return `the host ${host} already belongs to a service`;
  });
  readonly #doubted = new Set<string>();
  #isEachDoubted = false;

  /** Domains whose limits some service requests by ext_proc. */
  get extProcDomains(): ReadonlySet<string> {
    return new Set(this.#claims.flatMap((one) => (one.inExtProc ? [one.domain] : [])));
  }

  /** Adds a service at the end; false, and not added, when there are `servicesMax` already. */
  add(draft: ServiceDraft): boolean {
    if (this.#drafts.length >= servicesMax) return false;
    this.#drafts.push(draft);
    return true;
  }

  /** Returns the services in the order of the files, finished with the settings of `proxies`. */
  finish(proxies: ProxyPolicy): readonly ServicePolicy[] {
    const services = this.#drafts.flatMap((draft) => draft(proxies) ?? []);
    this.#reportClusters(services);
    return services;
  }

  /** Records a service's cluster. After all files are read, no other service may have it. */
  claimCluster(claim: ClusterClaim): void {
    this.#clusterClaims.push(claim);
  }

  /** Records a service whose calls are measured. */
  measure(service: MeasuredService): void {
    this.#measured.push(service);
  }

  /** Services whose calls are measured, in the order of the files. */
  get measured(): readonly MeasuredService[] {
    return this.#measured;
  }

  /** Records a service's rate limit. It must exist after all files are read. */
  claim(claim: RateLimitClaim): void {
    this.#claims.push(claim);
  }

  /** Reports a shared cluster at its second mention, or at its only one if the other is implied. */
  #reportClusters(services: readonly ServicePolicy[]): void {
    const { contested } = indexClusters(services);
    const named = new Set<string>();
    for (const { cluster, service, node, reader } of this.#clusterClaims) {
      const others = contested.get(cluster)?.filter((name) => name !== service) ?? [];
      const isImplied = others.some((other) => !this.#isNamed(cluster, other));
      if (others.length > 0 && (isImplied || named.has(cluster))) {
        const other = quoteText(others[0] ?? "");
        const message = `the cluster ${quoteText(cluster)} also belongs to the service ${other}`;
        reader.reportContent(node, { id: "HG242", message });
      }
      named.add(cluster);
    }
  }

  #isNamed(cluster: string, service: string): boolean {
    return this.#clusterClaims.some((one) => one.cluster === cluster && one.service === service);
  }

  /**
   * Records that some limits of a domain were wrong, so it is unknown what they may match;
   * undefined: the domain is unknown too.
   */
  doubt(domain: string | undefined): void {
    if (domain === undefined) this.#isEachDoubted = true;
    else this.#doubted.add(domain);
  }

  /** Reports claims that match no domain or limit, unless another problem may be the cause. */
  reportUnmet(domains: readonly string[], rules: readonly Rule[]): void {
    if (this.#claims.length === 0 || this.#isEachDoubted) return;
    const paths = new Map(domains.map((domain) => [domain, new LimitPaths()]));
    for (const rule of rules) paths.get(rule.domain)?.add(rule);
    for (const claim of this.#claims) {
      if (this.#doubted.has(claim.domain)) continue;
      checkClaim(claim, paths);
      warnOfCosts(
        claim,
        rules.filter(({ domain }) => domain === claim.domain),
      );
    }
  }
}

function checkClaim(claim: RateLimitClaim, paths: ReadonlyMap<string, LimitPaths>): void {
  const { reader, domain, domainNode, descriptors } = claim;
  const limits = paths.get(domain);
  if (limits === undefined) {
    reader.reportContent(domainNode, {
      id: "HG230",
      message: `the policy has no domain named ${quoteText(domain)}`,
      suggestion: findNearestName(domain, [...paths.keys()]),
    });
    return;
  }
  for (const { parts, node } of descriptors) {
    if (limits.canMeet(parts)) continue;
    const keys = parts.map(({ key }) => key);
    const stranger = keys.find((key) => !limits.keys.has(key));
    const path = quoteText(keys.join(", "));
    reader.report(node, {
      id: "HG231",
      message: `no limit of the domain ${quoteText(domain)} has the path ${path}`,
      expected: "the keys and fixed values of a limit's path, outermost descriptor first",
      suggestion: stranger === undefined ? undefined : findNearestName(stranger, [...limits.keys]),
    });
  }
}
