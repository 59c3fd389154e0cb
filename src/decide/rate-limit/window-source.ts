import type { Charge } from "../../core/limits/bucket.js";
import type { Limit } from "../../core/limits/limit.js";
import { epochWindows, type Window, type Windows } from "../../core/limits/window.js";
import { calendarWindows } from "./calendar.js";

/** Knows the windows of limits that count in windows, and looks them up once a window. */
export class WindowSource {
  readonly #known = new WeakMap<Limit, Windows>();

  /** The windows that such a limit counts in now; undefined for one that drains. */
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

  /** Brings what was made in other windows up to date. */
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

/** What was made for the windows of its time. */
interface Windowed {
  readonly asks: readonly { readonly limit: Limit; charge: Charge }[];
  charges: readonly Charge[];
  /** How long they hold; undefined where none has windows. */
  window: Window | undefined;
}

/** The time in which the windows of all charges hold; undefined where none has any. */
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
