/**
 * Relations of limits to the rest of a policy, checked after all files are read: their names by
 * domain, the `replaces` that refer to them, and limits that only ext_proc can serve.
 */
export class LimitNames {
  readonly #names = new Map<string, Set<string>>();
  readonly #references: Reference[] = [];
  readonly #extProcLimits: { readonly domain: string; readonly warn: () => void }[] = [];
  readonly #clusters: { readonly cluster: string; readonly warn: () => void }[] = [];

  /** Records that a limit of that name was read, valid or not. */
  define(domain: string, name: string): void {
    const names = this.#names.get(domain) ?? new Set();
    this.#names.set(domain, names.add(name));
  }

  /** Requires that a limit has this name; `reportMissing` is called at the end if none has. */
  refer(reference: Reference): void {
    this.#references.push(reference);
  }

  /** Records that a limit needs ext_proc; `warn` is called at the end if no service uses it. */
  needExtProc(domain: string, warn: () => void): void {
    this.#extProcLimits.push({ domain, warn });
  }

  /** Warns of each limit that no service serves. @param served domains that ext_proc asks for */
  warnOfIdleOver(served: ReadonlySet<string>): void {
    for (const { domain, warn } of this.#extProcLimits) if (!served.has(domain)) warn();
  }

  /** Records a limit's fallback cluster; `warn` is called at the end if no service has it. */
  needCluster(cluster: string, warn: () => void): void {
    this.#clusters.push({ cluster, warn });
  }

  /** Warns of each cluster that no service has. @param known clusters of services */
  warnOfStrangers(known: ReadonlySet<string>): void {
    for (const { cluster, warn } of this.#clusters) if (!known.has(cluster)) warn();
  }

  /** Reports each name that no limit has. */
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
  /** Called with the names that exist. */
  readonly reportMissing: (names: readonly string[]) => void;
}
