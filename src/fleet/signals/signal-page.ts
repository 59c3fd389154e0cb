import { type SeriesSelector, selects, unescapeLabel } from "../../core/base/series-selector.js";
import { type KeyedBy, parseReading, someOf } from "./signal-answers.js";
import { ReadingSum, type SignalReadings } from "./signal-readings.js";

/** Maximum length of a line, in characters. Longer lines are skipped. */
export const pageLineCharsMax = 16_384;

/** Maximum number of labels of a series. */
export const pageLabelsMax = 64;

/**
 * Reads a page in the Prometheus text format in chunks, and sums up the series that a selector
 * matches. The page of a large exporter has megabytes, and is never held as a whole. The caller
 * limits its size.
 *
 * Source: Prometheus, "Exposition formats": text format 0.0.4; OpenMetrics 1.0 where it agrees.
 */
export class SignalPage {
  readonly #select: SeriesSelector;
  readonly #by: string | undefined;
  readonly #sum: ReadingSum;
  #rest = "";
  #isTooLong = false;

  constructor(select: SeriesSelector, { by, keysMax }: KeyedBy) {
    this.#select = select;
    this.#by = by;
    this.#sum = new ReadingSum(by === undefined ? undefined : keysMax);
  }

  /** Reads the next chunk, split at any position. */
  add(piece: string): void {
    let from = 0;
    for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", from)) {
      this.#line(this.#rest + piece.slice(from, end));
      this.#rest = "";
      this.#isTooLong = false;
      from = end + 1;
    }
    if (this.#isTooLong) return;
    this.#rest += piece.slice(from);
    this.#isTooLong = this.#rest.length > pageLineCharsMax;
    if (this.#isTooLong) this.#rest = "";
  }

  /**
   * Completes the page.
   *
   * @throws ServiceError SIGNAL_EMPTY if no series matches or none has a number
   */
  finish(): SignalReadings {
    this.#line(this.#rest);
    this.#rest = "";
    return someOf(this.#sum);
  }

  #line(line: string): void {
    const { metric } = this.#select;
    if (this.#isTooLong || line.length > pageLineCharsMax || !line.startsWith(metric)) return;
    const next = line[metric.length];
    if (next !== "{" && next !== " " && next !== "\t") return;
    const series = readSeries(line.slice(metric.length));
    if (series === undefined || !selects(this.#select, series.labels)) return;
    const key = this.#by === undefined ? undefined : series.labels.get(this.#by);
    this.#sum.add(series.value, key);
  }
}

const labelPattern = /[\s,]*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"/y;
const valuePattern = /^\s*([^\s#]+)/;

/** Reads what follows a metric's name. Undefined if it is malformed. */
function readSeries(
  text: string,
): { readonly labels: ReadonlyMap<string, string>; readonly value: number } | undefined {
  const labels = new Map<string, string>();
  let rest = text;
  if (text.startsWith("{")) {
    labelPattern.lastIndex = 1;
    let end = 1;
    for (let found = labelPattern.exec(text); found !== null; found = labelPattern.exec(text)) {
      const [, name = "", value = ""] = found;
      if (labels.size >= pageLabelsMax) return undefined;
      labels.set(name, unescapeLabel(value));
      end = labelPattern.lastIndex;
    }
    const close = /^[\s,]*\}/.exec(text.slice(end));
    if (close === null) return undefined;
    rest = text.slice(end + close[0].length);
  }
  const value = valuePattern.exec(rest)?.[1];
  return value === undefined ? undefined : { labels, value: parseReading(value) };
}
