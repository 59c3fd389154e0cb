import type { ScalarValue } from "../../src/core/admission/exchange-messages.js";
import type { UsageObserver, UsageObservers } from "../../src/decide/budget/budget-call.js";

/** One response as it was shown. */
export interface ShownResponse {
  readonly fields: ReadonlyMap<string, ScalarValue>;
  readonly headers: ReadonlyMap<string, string>[];
  readonly trailers: ReadonlyMap<string, string>[];
  /** The beginning of its body, and all of its bytes. */
  readonly text: string;
  readonly bodyBytes: number;
  /** How it ended, as often as that was told. */
  readonly ends: readonly boolean[];
}

const textCharsMax = 1_000;

/** Keeps what it is shown of responses to calls that have a reservation. */
export class RecordingObservers implements UsageObservers {
  readonly responseHeaderNames = new Set([":status", "content-type", "x-usage"]);
  readonly fieldNames = new Set(["reservation", "service", "amount"]);
  /** Responses of which it was asked, with those that are of no interest. */
  openedCount = 0;
  readonly shown: ShownResponse[] = [];

  open(fields: ReadonlyMap<string, ScalarValue>): UsageObserver | undefined {
    this.openedCount += 1;
    if (!fields.has("reservation")) return undefined;
    const ends: boolean[] = [];
    const shown = {
      fields,
      headers: [] as ReadonlyMap<string, string>[],
      trailers: [] as ReadonlyMap<string, string>[],
      text: "",
      bodyBytes: 0,
      ends,
    };
    this.shown.push(shown);
    return {
      responded: (headers) => shown.headers.push(headers),
      body: (bytes) => {
        shown.bodyBytes += bytes.length;
        const text = Buffer.from(bytes.subarray(0, textCharsMax)).toString();
        shown.text = (shown.text + text).slice(0, textCharsMax);
      },
      trailers: (headers) => shown.trailers.push(headers),
      end: (isComplete) => ends.push(isComplete),
    };
  }
}
