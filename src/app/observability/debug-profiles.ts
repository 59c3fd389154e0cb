import { Session } from "node:inspector";
import { getHeapSnapshot } from "node:v8";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { type Page, type PageAsk, textPage } from "./get-server.js";

/** Maximum duration of a CPU profile, in seconds. */
export const profileSecondsMax = 60;

const profileSecondsDefault = 30;

/** Profiles of this process: one at a time, because each slows it down. */
export class Profiles {
  readonly #clock: Clock;
  #isBusy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a CPU profile of `seconds`, as `.cpuprofile`. Ends early when the caller disconnects. */
  async cpu({ query, signal }: PageAsk): Promise<Page> {
    const text = query.get("seconds") ?? String(profileSecondsDefault);
    const seconds = Number(text);
    if (!/^[0-9]{1,2}$/.test(text) || seconds < 1 || seconds > profileSecondsMax) {
      return textPage(
        httpStatuses.badRequest,
        `seconds must be a whole number from 1 to ${profileSecondsMax}.`,
      );
    }
    if (this.#isBusy) return busyPage;
    this.#isBusy = true;
    try {
      const body = await profileCpu(() => this.#wait(seconds * 1_000, signal));
      const headers = { "content-disposition": 'attachment; filename="headgate.cpuprofile"' };
      return { status: httpStatuses.ok, contentType: "application/json", body, headers };
    } finally {
      this.#isBusy = false;
    }
  }

  /** Takes a snapshot of the heap, as `.heapsnapshot`. Nothing is decided meanwhile. */
  async heap(): Promise<Page> {
    if (this.#isBusy) return busyPage;
    this.#isBusy = true;
    const headers = { "content-disposition": 'attachment; filename="headgate.heapsnapshot"' };
    const body = getHeapSnapshot();
    body.once("close", () => {
      this.#isBusy = false;
    });
    return { status: httpStatuses.ok, contentType: "application/json", body, headers };
  }

  #wait(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(delayMs, resolve);
      const end = (): void => {
        cancel();
        resolve();
      };
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
  }
}

const busyPage = textPage(
  httpStatuses.conflict,
  "Another profile is being taken; only one at a time is allowed.",
);

/** Profiles until `wait` resolves. Returns the profile as JSON. */
async function profileCpu(wait: () => Promise<void>): Promise<string> {
  const session = new Session();
  session.connect();
  try {
    await post(session, "Profiler.enable");
    await post(session, "Profiler.start");
    await wait();
    const stopped = await post(session, "Profiler.stop");
    return JSON.stringify(Reflect.get(Object(stopped), "profile"));
  } finally {
    session.disconnect();
  }
}

function post(session: Session, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.post(method, (error, result?: unknown) => (error ? reject(error) : resolve(result)));
  });
}
