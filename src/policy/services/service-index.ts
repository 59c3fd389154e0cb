import { ConditionCompiler } from "../cel/cel.js";
import { createPriorityClassifier, type PriorityClassifier } from "./priority-classifier.js";
import type { ServicePolicy } from "./service-policy.js";

/** A service of a policy, with what is computed once for all its requests. */
export interface IndexedService {
  readonly service: ServicePolicy;
  readonly classifier: PriorityClassifier;
}

/** The services of a policy, by name and by host. */
export interface ServiceIndex {
  /** Returns the service of that name; undefined if there is none. */
  named(name: string): IndexedService | undefined;
  /** Returns the service with the host of an `:authority`, in any case and with any port. */
  at(authority: string): IndexedService | undefined;
}

/** Builds an index service by service. Names and hosts are unique, as checked when read. */
export class ServiceIndexBuilder {
  readonly #byName = new Map<string, IndexedService>();
  readonly #byHost = new Map<string, IndexedService>();
  readonly #compiler = new ConditionCompiler();

  /** Adds a service; compiles its conditions, about 50 us each. */
  add(service: ServicePolicy): void {
    const classifier = createPriorityClassifier(service.priority, this.#compiler);
    const indexed = Object.freeze({ service, classifier });
    this.#byName.set(service.name, indexed);
    for (const host of service.hosts) this.#byHost.set(host, indexed);
  }

  /** Returns the index of the added services. */
  finish(): ServiceIndex {
    const byName = this.#byName;
    const byHost = this.#byHost;
    return Object.freeze({
      named: (name: string) => byName.get(name),
      at: (authority: string) => byHost.get(authority) ?? byHost.get(hostOf(authority)),
    });
  }
}

/**
 * Returns the host of an authority in lower case, without a port and without a trailing dot.
 * Source: RFC 3986 section 3.2.
 */
export function hostOf(authority: string): string {
  return authority
    .toLowerCase()
    .replace(/:[0-9]{0,5}$/, "")
    .replace(/\.$/, "");
}
