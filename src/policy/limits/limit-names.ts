/**
 * The names of a policy's limits, by domain, and who replaces them: `replaces` may name a limit
 * that is read later, so that it is held against the names at the end.
 */
export class LimitNames {
  readonly #names = new Map<string, Set<string>>();
  readonly #references: Reference[] = [];

  /** A limit of that name was read, right or wrong. */
  define(domain: string, name: string): void {
    const names = this.#names.get(domain) ?? new Set();
    this.#names.set(domain, names.add(name));
  }

  /** A name must be some limit's; `reportMissing` is called at the end if it is not. */
  refer(reference: Reference): void {
    this.#references.push(reference);
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
