import { assert } from "../core/base/errors.js";
import type { JsonValue } from "../core/base/json.js";
import type { PriceTable } from "../core/budgets/price.js";
import type { Rule } from "../core/limits/limit.js";
import { DescriptorTree } from "../core/limits/match.js";
import type { BudgetPolicy } from "./budgets/budget-policy.js";
import { defaultProxies } from "./proxies/default-proxies.js";
import type { ProxyPolicy } from "./proxies/proxies.js";
import type { QuotaPolicy } from "./quotas/quota-policy.js";
import { type ServiceIndex, ServiceIndexBuilder } from "./services/service-index.js";
import type { ServicePolicy } from "./services/service-policy.js";
import type { RoomPolicy } from "./waiting-rooms/room-policy.js";

/** The rules that decide requests: an immutable snapshot, only replaced as a whole. */
export interface Policy {
  /** Identifies its source texts: a short hash of their contents, computed by the caller. */
  readonly version: string;
  /** By `index`. */
  readonly rules: readonly Rule[];
  /** The rules of each domain as a tree; a domain without rules has an empty one. */
  readonly domains: ReadonlyMap<string, DescriptorTree>;
  /** The services with their protection, in the order of the files. */
  readonly services: readonly ServicePolicy[];
  /** Quotas that Envoys enforce, in the order of the files, with unique names. */
  readonly quotas: readonly QuotaPolicy[];
  /** Rooms in front of services, in the order of the files, with unique names. */
  readonly waitingRooms: readonly RoomPolicy[];
  /** In the order of the files, with unique names. */
  readonly budgets: readonly BudgetPolicy[];
  /** Undefined: no budget is in money. */
  readonly prices: PriceTable | undefined;
  /** Settings for every proxy of the fleet. */
  readonly proxies: ProxyPolicy;
  /** The services by name and by host, each with its classifier. */
  readonly serviceIndex: ServiceIndex;
}

/** Builds a policy in steps, so that a large one never blocks the event loop for long. */
export class PolicyBuilder {
  readonly #version: string;
  readonly #rules: Rule[] = [];
  readonly #domains = new Map<string, DescriptorTree>();
  readonly #services: ServicePolicy[] = [];
  readonly #index = new ServiceIndexBuilder();
  #proxies: ProxyPolicy = defaultProxies;
  #quotas: readonly QuotaPolicy[] = [];
  readonly #waitingRooms: RoomPolicy[] = [];
  readonly #budgets: BudgetPolicy[] = [];
  #prices: PriceTable | undefined;
  #isFinished = false;

  constructor(version: string) {
    this.#version = version;
  }

  /** Adds domains, including those without rules. */
  addDomains(domains: readonly string[]): void {
    assert(!this.#isFinished, "a finished policy takes no domains");
    for (const domain of domains) this.#treeOf(domain);
  }

  /** Inserts the next rules, in the order of their `index`. */
  add(rules: readonly Rule[]): void {
    assert(!this.#isFinished, "a finished policy takes no rules");
    for (const rule of rules) {
      assert(rule.index === this.#rules.length, "rules arrive in the order of their index");
      // A copy from another thread is no longer frozen.
      if (rule.metadata !== undefined) freezeJson(rule.metadata);
      this.#rules.push(rule);
      this.#treeOf(rule.domain).insert(rule);
    }
  }

  /** Adds the next services, in the order of the files; compiles their conditions. */
  addServices(services: readonly ServicePolicy[]): void {
    assert(!this.#isFinished, "a finished policy takes no services");
    for (const service of services) {
      this.#services.push(service);
      this.#index.add(service);
    }
  }

  /** Sets the quotas that Envoys enforce. Default: none. */
  setQuotas(quotas: readonly QuotaPolicy[]): void {
    assert(!this.#isFinished, "a finished policy takes no quotas");
    this.#quotas = Object.freeze([...quotas]);
  }

  /** Adds the next waiting rooms, in the order of the files. */
  addWaitingRooms(rooms: readonly RoomPolicy[]): void {
    assert(!this.#isFinished, "a finished policy takes no waiting rooms");
    this.#waitingRooms.push(...rooms);
  }

  /** Adds the next budgets, in the order of the files. */
  addBudgets(budgets: readonly BudgetPolicy[]): void {
    assert(!this.#isFinished, "a finished policy takes no budgets");
    this.#budgets.push(...budgets);
  }

  /** Sets the prices of calls by model. Default: none. */
  setPrices(prices: PriceTable | undefined): void {
    assert(!this.#isFinished, "a finished policy takes no prices");
    this.#prices = prices;
  }

  /** Sets the settings for every proxy. Default: `defaultProxies`. */
  setProxies(proxies: ProxyPolicy): void {
    assert(!this.#isFinished, "a finished policy takes no proxies");
    this.#proxies = proxies;
  }

  /** Returns the finished policy. The builder accepts nothing after it. */
  finish(): Policy {
    assert(!this.#isFinished, "a policy is finished once");
    this.#isFinished = true;
    return Object.freeze({
      version: this.#version,
      rules: Object.freeze(this.#rules),
      domains: this.#domains,
      services: Object.freeze(this.#services),
      quotas: this.#quotas,
      waitingRooms: Object.freeze(this.#waitingRooms),
      budgets: Object.freeze(this.#budgets),
      prices: this.#prices,
      proxies: this.#proxies,
      serviceIndex: this.#index.finish(),
    });
  }

  #treeOf(domain: string): DescriptorTree {
    const tree = this.#domains.get(domain) ?? new DescriptorTree();
    this.#domains.set(domain, tree);
    return tree;
  }
}

/** Builds a policy of that version from parsed parts; missing parts have their defaults. */
export function buildPolicy(
  version: string,
  parsed: Pick<Policy, "rules" | "services" | "quotas"> &
    Partial<Pick<Policy, "proxies" | "waitingRooms" | "budgets" | "prices">> & {
      readonly domains: readonly string[];
    },
): Policy {
  const builder = new PolicyBuilder(version);
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  builder.setQuotas(parsed.quotas);
  builder.addWaitingRooms(parsed.waitingRooms ?? []);
  builder.addBudgets(parsed.budgets ?? []);
  builder.setPrices(parsed.prices);
  if (parsed.proxies !== undefined) builder.setProxies(parsed.proxies);
  return builder.finish();
}

/** Freezes a value and all of its parts. Its depth was bounded when it was read. */
function freezeJson(value: JsonValue): void {
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) freezeJson(part);
  Object.freeze(value);
}
