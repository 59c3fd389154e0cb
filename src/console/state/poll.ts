import { type ReadonlySignal, type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { msToNextPoll } from "../data/poll-times.js";
import { errorText } from "./api.js";
import { nowMs, pause, untilVisible } from "./browser.js";
import { session } from "./session.js";

/** What was asked for again and again, as it is known now. */
export interface Polled<T> {
  /** The last answer; kept while later ones fail. */
  readonly data: T | undefined;
  /** Why the last attempt failed. */
  readonly error: string | undefined;
  /** When the last answer came. */
  readonly atMs: number;
}

const retryMsMax = 5_000;

/** How something is polled. */
export interface PollOptions<T> {
  /** How long to wait after an answer, which may depend on what came. */
  readonly everyMs: number | ((data: T) => number);
  /** What the question depends on; a change begins anew. */
  readonly about?: string;
  /** With false nothing is asked. */
  readonly isOn?: boolean;
}

/**
 * Asks now and then every so often, while the page can be seen and somebody is signed in. A failure
 * is tried again, more and more slowly.
 */
export function usePoll<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  { everyMs, about = "", isOn = true }: PollOptions<T>,
): ReadonlySignal<Polled<T>> {
  const polled = useSignal<Polled<T>>({ data: undefined, error: undefined, atMs: 0 });
  useEffect(() => {
    const end = new AbortController();
    polled.value = { data: undefined, error: undefined, atMs: 0 };
    if (isOn) void keepAsking({ ask, everyMs, signal: end.signal, polled });
    return () => end.abort();
    // The question is named by `about`: its function is another one at each rendering.
  }, [about, isOn]);
  return polled;
}

async function keepAsking<T>({
  ask,
  everyMs,
  signal,
  polled,
}: {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly everyMs: PollOptions<T>["everyMs"];
  readonly signal: AbortSignal;
  readonly polled: Signal<Polled<T>>;
}): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    await untilVisible(signal);
    await untilSignedIn(signal);
    if (signal.aborted) return;
    try {
      const data = await ask(signal);
      if (signal.aborted) return;
      failures = 0;
      polled.value = { data, error: undefined, atMs: nowMs() };
      const stepMs = typeof everyMs === "number" ? everyMs : everyMs(data);
      await pause(msToNextPoll(nowMs(), stepMs), signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      polled.value = { ...polled.peek(), error: errorText(error) };
      await pause(Math.min(retryMsMax, 1_000 * 2 ** (failures - 1)), signal);
    }
  }
}

/** Resolves once somebody is signed in, or the signal ends. */
export function untilSignedIn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = session.subscribe(({ kind }) => {
      if (kind !== "in" && !signal.aborted) return;
      // Called at once, before there is anything to stop.
      queueMicrotask(() => stop());
      resolve();
    });
    signal.addEventListener("abort", () => {
      stop();
      resolve();
    });
  });
}
