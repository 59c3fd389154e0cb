import type { HostReadingName, HostReadings } from "../../core/admission/host-reading.js";
import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { SignalReader } from "../../fleet/signals/signal-readings.js";
import { type HostLoad, type HostLoadOptions, openHostLoad } from "../../host/host-load.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { PolicyFeed } from "../policy/active-policy.js";

interface HostWatchParts extends Pick<HostLoadOptions, "eventLoop" | "reader" | "root"> {
  readonly clock: Clock;
  readonly policies: Pick<PolicyFeed, "current" | "onLoaded">;
  /** Receives all readings, about once a second. */
  readonly onRead: (readings: HostReadings) => void;
}

/** Reads the host while the active policy uses its readings. */
export class HostWatch {
  readonly #parts: HostWatchParts;
  readonly #stopFollowing: () => void;
  #load: HostLoad | undefined;
  #first: Promise<void> = Promise.resolve();

  constructor(parts: HostWatchParts) {
    this.#parts = parts;
    this.#follow();
    this.#stopFollowing = parts.policies.onLoaded(() => this.#follow());
  }

  /** Returns a source of one reading. It waits for the first readings. */
  readerOf(name: HostReadingName): SignalReader {
    return {
      read: async () => {
        await this.#first;
        const reading = this.#load?.readings[name];
        if (reading !== undefined) return { kind: "whole", reading };
        throw new ServiceError("SIGNAL_EMPTY", "The host does not have this reading.");
      },
    };
  }

  close(): void {
    this.#stopFollowing();
    this.#end();
  }

  #follow(): void {
    const isUsed = this.#parts.policies.current()?.services.some(usesHost) === true;
    if (!isUsed) this.#end();
    else if (this.#load === undefined) this.#open();
  }

  #open(): void {
    const { onRead, ...parts } = this.#parts;
    this.#first = new Promise((resolve) => {
      this.#load = openHostLoad({
        ...parts,
        onRead: (readings) => {
          resolve();
          onRead(readings);
        },
      });
    });
  }

  #end(): void {
    this.#load?.close();
    this.#load = undefined;
  }
}

function usesHost({ admission, concurrency }: ServicePolicy): boolean {
  if (admission === undefined) return false;
  return admission.load?.host !== undefined || concurrency?.signal?.place.kind === "host";
}
