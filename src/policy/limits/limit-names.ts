/**
 * What limits have to do with the rest of a policy, held against it when all files are read: their
 * names, by domain, and who replaces them; and those that delay requests, which services must ask.
 */
export class LimitNames {
  readonly #names = new Map<string, Set<string>>();
  readonly #references: Reference[] = [];
  readonly #delays: { readonly domain: string; readonly warn: () => void }[] = [];

  /** A limit of that name was read, right or wrong. */
  define(domain: string, name: string): void {
    const names = this.#names.get(domain) ?? new Set();
    this.#names.set(domain, names.add(name));
  }

  /** A name must be some limit's; `reportMissing` is called at the end if it is not. */
  refer(reference: Reference): void {
    this.#references.push(reference);
  }

  /** A limit delays requests; `warn` is called at the end if none of them can be delayed. */
  delay(domain: string, warn: () => void): void {
    this.#delays.push({ domain, warn });
  }

  /** Warns of each limit that cannot delay. @param delaying domains whose requests can wait */
  warnOfIdleDelays(delaying: ReadonlySet<string>): void {
    for (const { domain, warn } of this.#delays) if (!delaying.has(domain)) warn();
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
