/**
 * What limits have to do with the rest of a policy, held against it when all files are read: their
 * names, by domain, and who replaces them; and those that only ext_proc can serve.
 */
export class LimitNames {
  readonly #names = new Map<string, Set<string>>();
  readonly #references: Reference[] = [];
  readonly #extProcLimits: { readonly domain: string; readonly warn: () => void }[] = [];
  readonly #clusters: { readonly cluster: string; readonly warn: () => void }[] = [];

  /** A limit of that name was read, right or wrong. */
  define(domain: string, name: string): void {
    const names = this.#names.get(domain) ?? new Set();
    this.#names.set(domain, names.add(name));
  }

  /** A name must be some limit's; `reportMissing` is called at the end if it is not. */
  refer(reference: Reference): void {
    this.#references.push(reference);
  }

  /** A limit needs ext_proc; `warn` is called at the end if no service asks for it there. */
  needExtProc(domain: string, warn: () => void): void {
    this.#extProcLimits.push({ domain, warn });
  }

  /** Warns of each limit that nobody serves. @param served domains that ext_proc asks for */
  warnOfIdleOver(served: ReadonlySet<string>): void {
    for (const { domain, warn } of this.#extProcLimits) if (!served.has(domain)) warn();
  }

  /** A limit sends requests to a cluster; `warn` is called at the end if no service has it. */
  needCluster(cluster: string, warn: () => void): void {
    this.#clusters.push({ cluster, warn });
  }

  /** Warns of each cluster that is nobody's. @param known clusters of services */
  warnOfStrangers(known: ReadonlySet<string>): void {
    for (const { cluster, warn } of this.#clusters) if (!known.has(cluster)) warn();
  }

  /** Reports each name that is nobody's. */
  reportMissing(): void {
    for (const { domain, name, reportMissing } of this.#references) {
      const names = this.#names.get(domain);
      if (names?.has(name) !== true) reportMissing([...(names ?? [])]);
    }
  }
}

/** A name in `replaces`. */
export interface Reference {
  readonly domain: string;
  readonly name: string;
  /** Takes the names that there are. */
  readonly reportMissing: (names: readonly string[]) => void;
}
