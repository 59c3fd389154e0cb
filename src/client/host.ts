import type { Clock } from "../core/base/clock.js";
import { systemClock } from "../host/clock.js";
import { type HostLoad, type HostLoadOptions, openHostLoad } from "../host/host-load.js";

export type { HostReadings } from "../core/admission/host-reading.js";
export type { HostLoad } from "../host/host-load.js";

/** How the host is read, and at which load it is full. */
export interface HostOptions extends Pick<HostLoadOptions, "everyMs" | "full" | "onRead" | "root"> {
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
}

/**
 * Reads the CPU, memory and pressure of this process's cgroup or host, and the delay of its event
 * loop, until `close`. It is a load source for `headgate/server`, and for other load shedding.
 */
export function createHostLoad({ clock = systemClock, ...options }: HostOptions = {}): HostLoad {
  return openHostLoad({ clock, ...options });
}
