import type { Clock, Random } from "../../core/base/clock.js";
import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import { type SignalEvent, SignalPoller } from "../../fleet/signals/signal-poller.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { SignalPlace } from "../../policy/services/signal-source.js";
import type { Logger } from "../base/logger.js";
import type { PolicyFeed } from "../policy/active-policy.js";
import { createSignalReader, type SignalReaderParts } from "./signal-readers.js";

interface SignalSourcesParts extends SignalReaderParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly policies: Pick<PolicyFeed, "current" | "onLoaded">;
  readonly onUpdate: (service: string, update: SignalUpdate) => void;
}

/** The source of one service's signal, and its poller. */
export interface PolledSource {
  /** Name in the policy. */
  readonly service: string;
  readonly kind: SignalPlace["kind"];
  readonly poller: SignalPoller;
}

interface HeldSource extends PolledSource {
  /** Settings of the source, to detect whether a new policy has the same. */
  readonly settings: string;
}

/** Maximum time that the start waits for first responses, in milliseconds. */
export const firstAnswerMsMax = 2_000;

/**
 * Polls the sources of all signals of the active policy, independently: one that hangs or fails
 * delays no other. If a new policy does not change a source's settings, it continues as before.
 */
export class SignalSources {
  readonly #parts: SignalSourcesParts;
  readonly #stopFollowing: () => void;
  #sources: ReadonlyMap<string, HeldSource> = new Map();

  constructor(parts: SignalSourcesParts) {
    this.#parts = parts;
    this.#follow();
    this.#stopFollowing = parts.policies.onLoaded(() => this.#follow());
  }

  /** The sources that are polled now. */
  polled(): Iterable<PolledSource> {
    return this.#sources.values();
  }

  /** Resolves when each has answered or failed once, after at most `firstAnswerMsMax`. */
  async settled(): Promise<void> {
    const { clock } = this.#parts;
    const firsts = [...this.#sources.values()].map(({ poller }) => poller.settled);
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = clock.schedule(firstAnswerMsMax, resolve);
    });
    await Promise.race([Promise.all(firsts), late]);
    cancel();
  }

  /** Stops all polls. */
  close(): void {
    this.#stopFollowing();
    for (const { poller } of this.#sources.values()) poller.close();
    this.#sources = new Map();
  }

  #follow(): void {
    const before = this.#sources;
    const after = new Map<string, HeldSource>();
    for (const service of this.#parts.policies.current()?.services ?? []) {
      const settings = settingsOf(service);
      if (settings === undefined) continue;
      const known = before.get(service.name);
      const isSame = known?.settings === settings;
      const source = isSame ? known : this.#open(service, settings);
      if (source !== undefined) after.set(service.name, source);
    }
    for (const source of before.values()) {
      if (after.get(source.service) !== source) source.poller.close();
    }
    this.#sources = after;
  }

  #open({ name, concurrency }: ServicePolicy, settings: string): HeldSource | undefined {
    const source = concurrency?.signal;
    if (source === undefined) return undefined;
    const { clock, random, logger, onUpdate } = this.#parts;
    const { place, everyMs, timeoutMs, staleAfterMs, whenMissing } = source;
    const { names = [], keysMax } = concurrency?.per ?? {};
    const poller = new SignalPoller({
      reader: createSignalReader(this.#parts, { place, keysMax, everyMs, timeoutMs }),
      settings: { everyMs, timeoutMs, staleAfterMs, whenMissing, names, keysMax: keysMax ?? 0 },
      clock,
      random,
      onUpdate: (update) => onUpdate(name, update),
      onEvent: (event) => logSignal(event, { service: name, source: place.kind, logger }),
    });
    return { service: name, kind: place.kind, poller, settings };
  }
}

/** Undefined if no signal limits the service's requests. */
function settingsOf({ admission, concurrency }: ServicePolicy): string | undefined {
  if (admission === undefined || concurrency?.signal === undefined) return undefined;
  const { thresholds: _, ...asked } = concurrency.signal;
  return JSON.stringify([asked, concurrency.per]);
}

/** Logs an event without a source's address, query and response, which may contain secrets. */
function logSignal(
  event: SignalEvent,
  { service, source, logger }: { service: string; source: string; logger: Logger },
): void {
  const line = { event: event.kind, service, source };
  if (event.kind === "signalFound") {
    logger.info(line, "The source of a service's signal answers again.");
  } else if (event.kind === "signalFailing") {
    const { code, detail } = event;
    const words =
      "The source of a service's signal fails; the last reading stays valid for a while.";
    logger.warn({ ...line, code, detail }, words);
  } else {
    const { whenMissing } = event;
    const words = `A service's signal has no valid reading: its limit is at its ${whenMissing}.`;
    logger.warn({ ...line, whenMissing }, words);
  }
}
