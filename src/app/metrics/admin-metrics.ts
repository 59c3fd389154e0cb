import type { ReadMetric } from "../base/metrics.js";

/** Outcomes of calls of the admin API. Plain integers: read them when scraped. */
export class AdminCounts {
  readonly #byEnd = new Map<
    string,
    { readonly method: string; readonly code: string; n: number }
  >();

  /** Counts the outcome of a call. Both words are from closed sets. */
  count(method: string, code: string): void {
    const id = `${method} ${code}`;
    const known = this.#byEnd.get(id);
    if (known === undefined) this.#byEnd.set(id, { method, code, n: 1 });
    else known.n += 1;
  }

  /** Yields each outcome with its count. */
  *ends(): Iterable<{ readonly method: string; readonly code: string; readonly count: number }> {
    for (const { method, code, n: count } of this.#byEnd.values()) yield { method, code, count };
  }
}

/** Returns the metrics of the admin API. */
export function adminMetrics(counts: AdminCounts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_admin_requests_total",
      help:
        "Calls of the admin API, by method (`none`: unknown method) and code " +
        "(`unread`: the message could not be parsed).",
      labelNames: ["method", "code"],
      read: (add) => {
        for (const { method, code, count } of counts.ends()) add(count, { method, code });
      },
    },
  ];
}
