import type { Charge } from "../../src/core/limits/bucket.js";
import type { LimitKey } from "../../src/core/limits/limit.js";

/** What happened to a key in the store, in the order of its happening. */
export type KeyEvent =
  /** A charge was decided: `takenHits` and `refundedHits` say what it changed. */
  | {
      readonly kind: "asked";
      readonly charge: Charge;
      readonly takenHits: number;
      readonly refundedHits: number;
      /** Over, although it was the request's only charge on the key. */
      readonly isOverAlone: boolean;
      /** When, by the clock of the server. */
      readonly serverUs: number;
    }
  /** Hits that a charge at that time of the server had taken were admitted to nobody. */
  | { readonly kind: "givenBack"; readonly hits: number; readonly chargedUs: number }
  /** The store's clock went forward by itself. */
  | { readonly kind: "clockForward"; readonly byUs: number }
  /** The store's clock went back by itself. */
  | { readonly kind: "clockBack" }
  /** Hits that had been taken were forgotten. */
  | { readonly kind: "lost"; readonly hits: number };

/** Told of everything that changes keys; `atUs` is true time, whatever the server's clock says. */
export type KeyEventSink = (key: LimitKey, event: KeyEvent, atUs: number) => void;
