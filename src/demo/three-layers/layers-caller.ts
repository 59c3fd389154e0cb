import type { Clock, Random } from "../../core/base/clock.js";
import { type CallerCounts, noCallerCounts } from "./layers-counts.js";
import {
  capacityPerSecond,
  drawClass,
  drawWorkMs,
  type LayersSettings,
  naiveRetries,
  patienceMs,
  priorityHeader,
  serviceHosts,
  workHeader,
} from "./layers-settings.js";

/** One request of the caller. */
export interface CallerRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Final outcome of a request. */
export type CallerEnd = "served" | "refusedHere" | "refused" | "late";

/** Sends a request, with retries depending on the kind of caller. Never rejects. */
export type AskService = (request: CallerRequest) => Promise<CallerEnd>;

interface CallerParts {
  readonly clock: Clock;
  /** Draws times and kinds of requests. Separate from other randomness, so that runs compare. */
  readonly arrivals: Random;
  /** Draws the waits before retries. */
  readonly retries: Random;
  readonly send: typeof fetch;
  /** Creates the layer in the caller, which sends with `send`. */
  readonly createClient: (send: typeof fetch) => AskService;
}

/** Sends requests at the times of a Poisson process, independently of the responses. */
export class LayersCaller {
  readonly #parts: CallerParts;
  readonly #counts = { ...noCallerCounts };
  readonly #askWithLayer: AskService;
  #settings: LayersSettings;
  /** Time at which the next request is due; undefined: the load is zero. */
  #dueMs: number | undefined;
  #isStopped = false;

  constructor(parts: CallerParts, settings: LayersSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#askWithLayer = parts.createClient(this.#countedSend);
    this.#scheduleFrom(parts.clock.monotonicMs());
  }

  get counts(): CallerCounts {
    return { ...this.#counts };
  }

  set settings(settings: LayersSettings) {
    const isOtherLoad = settings.loadRatio !== this.#settings.loadRatio;
    this.#settings = settings;
    const isIdle = this.#dueMs === undefined;
    if (isOtherLoad && isIdle) this.#scheduleFrom(this.#parts.clock.monotonicMs());
  }

  stop(): void {
    this.#isStopped = true;
  }

  #scheduleFrom(fromMs: number): void {
    const { clock, arrivals } = this.#parts;
    const perSecond = this.#settings.loadRatio * capacityPerSecond;
    this.#dueMs = perSecond === 0 ? undefined : fromMs + gapMs(perSecond, arrivals.next());
    if (this.#dueMs === undefined || this.#isStopped) return;
    clock.schedule(Math.max(0, this.#dueMs - clock.monotonicMs()), () => this.#sendDue());
  }

  /** Sends all requests due by now, because timers have a resolution of one millisecond. */
  #sendDue(): void {
    const { clock, arrivals } = this.#parts;
    const nowMs = clock.monotonicMs();
    const perSecond = this.#settings.loadRatio * capacityPerSecond;
    while (this.#dueMs !== undefined && this.#dueMs <= nowMs && !this.#isStopped) {
      void this.#request();
      this.#dueMs = perSecond === 0 ? undefined : this.#dueMs + gapMs(perSecond, arrivals.next());
    }
    if (this.#dueMs === undefined || this.#isStopped) return;
    clock.schedule(Math.max(0, this.#dueMs - nowMs), () => this.#sendDue());
  }

  async #request(): Promise<void> {
    const { clock, arrivals } = this.#parts;
    const { layers, loadRatio } = this.#settings;
    const counts = this.#counts;
    const priority = drawClass(loadRatio, arrivals.next());
    // Rounded as in its header, so that caller and service count the same.
    const stated = drawWorkMs(arrivals.next()).toFixed(3);
    const workMs = Number(stated);
    counts.requests += 1;
    counts.workMs += workMs;
    const request = {
      url: `http://${layers.proxy ? serviceHosts.protected : serviceHosts.bare}/`,
      headers: { [workHeader]: stated, [priorityHeader]: priority },
    };
    const startMs = clock.monotonicMs();
    const end = await (layers.client ? this.#askWithLayer(request) : this.#askNaively(request));
    const isInTime = clock.monotonicMs() - startMs <= patienceMs;
    if (priority === "critical") counts.critical += 1;
    if (end !== "served" || !isInTime) {
      counts[end === "served" ? "late" : end] += 1;
      return;
    }
    counts.served += 1;
    counts.servedWorkMs += workMs;
    if (priority === "critical") counts.servedCritical += 1;
  }

  #countedSend: typeof fetch = (input, init) => {
    this.#counts.attempts += 1;
    return this.#parts.send(input, init);
  };

  /** Soon retries everything that fails, as long as its user waits. */
  async #askNaively({ url, headers }: CallerRequest): Promise<CallerEnd> {
    const { clock, retries } = this.#parts;
    const { attemptsMax, attemptMsMax, backoffMs } = naiveRetries;
    const endMs = clock.monotonicMs() + patienceMs;
    let end: CallerEnd = "late";
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const leftMs = endMs - clock.monotonicMs();
      if (leftMs <= 0) return "late";
      const status = await this.#attempt({
        url,
        headers,
        timeoutMs: Math.min(attemptMsMax, leftMs),
      });
      if (status !== undefined && status < 400) return "served";
      end = status === undefined ? "late" : "refused";
      if (attempt < attemptsMax) await this.#wait(retries.next() * backoffMs * 2 ** (attempt - 1));
    }
    return end;
  }

  /** Returns the status of the response; undefined: there was none in time. */
  async #attempt({
    url,
    headers,
    timeoutMs,
  }: Pick<CallerRequest, "url" | "headers"> & { readonly timeoutMs: number }): Promise<
    number | undefined
  > {
    const timeout = new AbortController();
    const cancel = this.#parts.clock.schedule(timeoutMs, () => timeout.abort());
    try {
      const response = await this.#countedSend(url, { headers, signal: timeout.signal });
      await response.arrayBuffer();
      return response.status;
    } catch {
      // Without a response, the cause does not matter.
      return undefined;
    } finally {
      cancel();
    }
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#parts.clock.schedule(delayMs, resolve);
    });
  }
}

function gapMs(perSecond: number, draw: number): number {
  return (-Math.log(1 - draw) / perSecond) * 1_000;
}
