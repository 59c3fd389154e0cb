import type { Charge } from "../../core/limits/bucket.js";
import type { Limit } from "../../core/limits/limit.js";
import { epochWindows, type Window, type Windows } from "../../core/limits/window.js";
import { calendarWindows } from "./calendar.js";

/** Caches the current windows of limits that count in windows. */
export class WindowSource {
  readonly #known = new WeakMap<Limit, Windows>();

  /** The current windows of a limit. Undefined for a limit that drains. */
  windowsOf(limit: Limit, epochUs: number): Windows | undefined {
    const { algorithm } = limit;
    if (algorithm?.kind !== "fixed_window") return undefined;
    const known = this.#known.get(limit);
    if (known !== undefined && epochUs >= known.startUs && epochUs < known.endUs) return known;
    const windows =
      algorithm.timeZone === undefined
        ? epochWindows(limit.periodUs, epochUs)
        : calendarWindows(limit.unit, algorithm.timeZone, epochUs);
    this.#known.set(limit, windows);
    return windows;
  }

  /** Updates charges that were made for earlier windows. */
  renew(prepared: Windowed, epochUs: number): void {
    const { window } = prepared;
    if (window === undefined || (epochUs >= window.startUs && epochUs < window.endUs)) return;
    for (const ask of prepared.asks) {
      const windows = this.windowsOf(ask.limit, epochUs);
      if (windows !== undefined) ask.charge = { ...ask.charge, windows };
    }
    prepared.charges = prepared.asks.map(({ charge }) => charge);
    prepared.window = commonWindow(prepared.charges);
  }
}

/** Charges that refer to the windows that were current when they were made. */
interface Windowed {
  readonly asks: readonly { readonly limit: Limit; charge: Charge }[];
  charges: readonly Charge[];
  /** When they expire. Undefined if no limit has windows. */
  window: Window | undefined;
}

/** The time during which the windows of all charges are valid. Undefined if there are none. */
export function commonWindow(charges: readonly Charge[]): Window | undefined {
  let common: Window | undefined;
  for (const { windows } of charges) {
    if (windows === undefined) continue;
    common = {
      startUs: Math.max(common?.startUs ?? 0, windows.startUs),
      endUs: Math.min(common?.endUs ?? Number.POSITIVE_INFINITY, windows.endUs),
    };
  }
  return common;
}
