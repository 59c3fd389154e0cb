import { assert } from "../core/base/errors.js";
import type { JsonValue } from "../core/base/json.js";
import type { Rule } from "../core/limits/limit.js";
import { DescriptorTree } from "../core/limits/match.js";
import { defaultProxies } from "./proxies/default-proxies.js";
import type { ProxyPolicy } from "./proxies/proxies.js";
import type { QuotaPolicy } from "./quotas/quota-policy.js";
import { type ServiceIndex, ServiceIndexBuilder } from "./services/service-index.js";
import type { ServicePolicy } from "./services/service-policy.js";

/** What is allowed: an immutable snapshot, swapped whole and never edited. */
export interface Policy {
  /** Names the texts it was made of: a short hash of their contents, as the caller made it. */
  readonly version: string;
  /** By `index`. */
  readonly rules: readonly Rule[];
  /** The rules of each domain as a tree; a domain without rules has an empty one. */
  readonly domains: ReadonlyMap<string, DescriptorTree>;
  /** What stands before each service, in the order of the files. */
  readonly services: readonly ServicePolicy[];
  /** What Envoys let pass by themselves, in the order of the files; their names differ. */
  readonly quotas: readonly QuotaPolicy[];
  /** What holds for every proxy of the fleet. */
  readonly proxies: ProxyPolicy;
  /** The services by name and by host, each with its classifier. */
  readonly serviceIndex: ServiceIndex;
}

/** Makes a policy piece by piece, so that a large one never holds the event loop for long. */
export interface PolicyBuilder {
  /** Makes domains known, also those that no rule follows for. */
  addDomains(domains: readonly string[]): void;
  /** Inserts the next rules, in the order of their `index`. */
  add(rules: readonly Rule[]): void;
  /** Adds the next services, in the order of the files; compiles their conditions. */
  addServices(services: readonly ServicePolicy[]): void;
  /** What Envoys let pass by themselves; unsaid, there are none. */
  setQuotas(quotas: readonly QuotaPolicy[]): void;
  /** What holds for every proxy; unsaid, it is the default. */
  setProxies(proxies: ProxyPolicy): void;
  /** The finished policy; the builder takes nothing after it. */
  finish(): Policy;
}

/** Starts a policy of that version, empty. */
export function createPolicyBuilder(version: string): PolicyBuilder {
  const rules: Rule[] = [];
  const domains = new Map<string, DescriptorTree>();
  const services: ServicePolicy[] = [];
  const index = new ServiceIndexBuilder();
  let proxies: ProxyPolicy = defaultProxies;
  let quotas: readonly QuotaPolicy[] = [];
  let isFinished = false;

  const treeOf = (domain: string): DescriptorTree => {
    const tree = domains.get(domain) ?? new DescriptorTree();
    domains.set(domain, tree);
    return tree;
  };

  return {
    addDomains(names) {
      assert(!isFinished, "a finished policy takes no domains");
      for (const name of names) treeOf(name);
    },
    add(more) {
      assert(!isFinished, "a finished policy takes no rules");
      for (const rule of more) {
        assert(rule.index === rules.length, "rules arrive in the order of their index");
        // As a copy from another thread it has lost its frost.
        if (rule.metadata !== undefined) freezeJson(rule.metadata);
        rules.push(rule);
        treeOf(rule.domain).insert(rule);
      }
    },
    addServices(more) {
      assert(!isFinished, "a finished policy takes no services");
      for (const service of more) {
        services.push(service);
        index.add(service);
      }
    },
    setQuotas(wanted) {
      assert(!isFinished, "a finished policy takes no quotas");
      quotas = Object.freeze([...wanted]);
    },
    setProxies(wanted) {
      assert(!isFinished, "a finished policy takes no proxies");
      proxies = wanted;
    },
    finish() {
      assert(!isFinished, "a policy is finished once");
      isFinished = true;
      return Object.freeze({
        version,
        rules: Object.freeze(rules),
        domains,
        services: Object.freeze(services),
        quotas,
        proxies,
        serviceIndex: index.finish(),
      });
    },
  };
}

/** Freezes a value and all in it; how deep it may be was bounded where it was read. */
function freezeJson(value: JsonValue): void {
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) freezeJson(part);
  Object.freeze(value);
}
