import { type ReadonlySignal, type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { msToNextPoll } from "../data/poll-times.js";
import { errorText } from "./api.js";
import { nowMs, pause, untilVisible } from "./browser.js";
import { session } from "./session.js";

/** Latest result of repeated requests. */
export interface Polled<T> {
  /** The last answer; kept while later ones fail. */
  readonly data: T | undefined;
  /** Why the last attempt failed. */
  readonly error: string | undefined;
  /** When the last answer came. */
  readonly atMs: number;
}

const retryMsMax = 5_000;

/** Settings of a poll. */
export interface PollOptions<T> {
  /** Delay after an answer, which may depend on its data. */
  readonly everyMs: number | ((data: T) => number);
  /** Parameters of the request. A change starts again. */
  readonly about?: string;
  /** If false, no request is made. */
  readonly isOn?: boolean;
}

/**
 * Requests data at once and then periodically, while the page is visible and a user is signed in.
 * After failures, it retries at increasing intervals.
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
    // `about` identifies the request, because the function is a new one at each rendering.
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

/** Resolves once a user is signed in, or the signal aborts. */
export function untilSignedIn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = session.subscribe(({ kind }) => {
      if (kind !== "in" && !signal.aborted) return;
      // The callback runs at once, before `stop` is assigned.
      queueMicrotask(() => stop());
      resolve();
    });
    signal.addEventListener("abort", () => {
      stop();
      resolve();
    });
  });
}
