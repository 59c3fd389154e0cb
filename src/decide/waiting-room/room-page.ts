import { formatTimestamp } from "../../core/base/timestamp.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import {
  type PageField,
  type PageText,
  type TemplatePart,
  templateParts,
} from "../../core/waiting-room/page-fields.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import { pageScript } from "./page-script.js";
import { pageTemplate } from "./page-template.js";
import { englishTexts } from "./page-texts.js";
import { builtInLanguage, chooseLanguage, directionOf } from "./room-language.js";
import type { RoomStanding } from "./room-standing.js";

/** The input of a page. */
export interface PageFacts {
  readonly standing: RoomStanding;
  /** Seconds until it asks again. */
  readonly refreshSeconds: number;
  /** Milliseconds since 1970, to say when an event opens. */
  readonly nowMs: number;
  /** Whether the request must not be sent again by the page. */
  readonly isUnsafe: boolean;
}

/** What the page's script updates, by the names of `data-field`. */
export type PageValues = Readonly<Record<PageField | "wait" | "opens" | "refreshText", string>>;

/** Fraction of ranges that contain the actual wait. */
const confidenceRatio = 0.9;

/** The pages of one room, prepared once for each language. */
export class RoomPages {
  readonly #policy: RoomPolicy;
  readonly #byLanguage = new Map<string, PageLanguage>();

  constructor(policy: RoomPolicy) {
    this.#policy = policy;
  }

  /** @param accept the header `accept-language` */
  html(accept: string | undefined, facts: PageFacts): string {
    return this.#languageOf(accept).html(facts);
  }

  /** Returns what the page's script shows, as text. */
  values(accept: string | undefined, facts: PageFacts): PageValues {
    return this.#languageOf(accept).values(facts);
  }

  #languageOf(accept: string | undefined): PageLanguage {
    const tag = chooseLanguage(accept, this.#policy.page.texts);
    let language = this.#byLanguage.get(tag);
    if (language === undefined) {
      language = new PageLanguage(this.#policy, tag);
      this.#byLanguage.set(tag, language);
    }
    return language;
  }
}

const rangesKept = 4_096;

/** One language of a room's pages. */
class PageLanguage {
  readonly #policy: RoomPolicy;
  readonly #tag: string;
  readonly #texts: Readonly<Record<PageText, string>>;
  readonly #pieces: readonly TemplatePart[];
  readonly #whole: Intl.NumberFormat;
  readonly #confidence: string;
  readonly #units: Readonly<Record<TimeUnit, Intl.NumberFormat>>;
  /** The parts of the policy's texts: each text is parsed once. */
  readonly #parts = new Map<string, readonly TemplatePart[]>();
  /** Formatted ranges: formatting one takes 35 us, and many visitors get the same range. */
  readonly #ranges = new GenerationalMap<string, string>(rangesKept);

  constructor(policy: RoomPolicy, tag: string) {
    const own = policy.page.texts.get(tag) ?? policy.page.texts.get(builtInLanguage);
    this.#policy = policy;
    this.#tag = tag;
    this.#texts = { ...englishTexts, ...Object.fromEntries(own ?? []) };
    this.#pieces = templateParts(policy.page.template ?? pageTemplate);
    const format = (options: Intl.NumberFormatOptions): Intl.NumberFormat =>
      new Intl.NumberFormat(localeOf(tag), options);
    const unit = (name: TimeUnit): Intl.NumberFormat =>
      format({ style: "unit", unit: name, unitDisplay: "long" });
    this.#whole = format({ maximumFractionDigits: 0 });
    this.#confidence = format({ style: "percent" }).format(confidenceRatio);
    this.#units = {
      second: unit("second"),
      minute: unit("minute"),
      hour: unit("hour"),
      day: unit("day"),
    };
  }

  html(facts: PageFacts): string {
    const values: Readonly<Record<string, string>> = this.values(facts);
    let html = "";
    for (const piece of this.#pieces) {
      html += piece.kind === "text" ? piece.text : this.#escaped(piece.name, values, facts);
    }
    const end = html.lastIndexOf("</body>");
    const script = this.#script(facts);
    return end === -1 ? html + script : html.slice(0, end) + script + html.slice(end);
  }

  values(facts: PageFacts): PageValues {
    const { standing, refreshSeconds, nowMs, isUnsafe } = facts;
    const { state, aheadCount, estimate, opensInSeconds } = standing;
    const isLost = isUnsafe && state !== "entered" && state !== "left";
    const fields: Record<PageField, string> = {
      lang: this.#tag,
      dir: directionOf(this.#tag),
      state,
      title: this.#texts[`${state}Title`],
      message: `${isLost ? `${this.#texts.notSent} ` : ""}${this.#texts[state]}`,
      room: this.#policy.name,
      position: aheadCount === undefined ? "" : this.#whole.format(aheadCount + 1),
      ahead: aheadCount === undefined ? "" : this.#whole.format(aheadCount),
      estimate: estimate === undefined ? "" : this.#range(estimate),
      confidence: estimate === undefined ? "" : this.#confidence,
      progress: String(standing.progressPercent),
      refreshSeconds: this.#whole.format(refreshSeconds),
      event: eventName(this.#policy, nowMs),
      opensAt: opensInSeconds === undefined ? "" : opening(nowMs, opensInSeconds),
      opensIn: opensInSeconds === undefined ? "" : this.#duration(opensInSeconds),
      endpoint: this.#policy.endpointPath,
    };
    const fill = (text: PageText): string => this.#filled(this.#texts[text], fields);
    const isWaiting = state === "waiting";
    return {
      ...fields,
      title: this.#filled(fields.title, fields),
      message: this.#filled(fields.message, fields),
      wait:
        estimate === undefined
          ? isWaiting
            ? fill("estimateUnknown")
            : ""
          : `${fields.estimate} ${fill("confidence")}`.trim(),
      opens: state === "preQueue" && opensInSeconds !== undefined ? fill("opens") : "",
      refreshText: fill("refresh"),
    };
  }

  #escaped(
    name: string,
    values: Readonly<Record<string, string>>,
    { refreshSeconds, isUnsafe }: PageFacts,
  ): string {
    if (name === "refreshTag") {
      const tag = `<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>\n`;
      return isUnsafe ? "" : tag;
    }
    if (!name.startsWith("text.")) return escapeHtml(valueIn(values, name));
    return escapeHtml(this.#filled(valueIn(this.#texts, name.slice("text.".length)), values));
  }

  #script({ refreshSeconds, isUnsafe, standing: { state } }: PageFacts): string {
    if (state === "entered" || state === "left") return "";
    const endpoint = escapeHtml(this.#policy.endpointPath);
    const unsafe = isUnsafe ? " data-unsafe=1" : "";
    const data = `data-endpoint="${endpoint}" data-refresh="${refreshSeconds}"${unsafe}`;
    return `<script ${data}>${pageScript}</script>\n`;
  }

  /** Rounds outwards, so that the range still holds. Example: `9–11 minutes`. */
  #range({ lowSeconds, highSeconds }: NonNullable<RoomStanding["estimate"]>): string {
    const unit = highSeconds <= secondsRangeMax ? "second" : unitOf(highSeconds);
    const step = unit === "second" ? secondsRangeStep : 1;
    const low = step * Math.floor(lowSeconds / secondsIn[unit] / step);
    const high = Math.max(low, step * Math.ceil(highSeconds / secondsIn[unit] / step));
    if (low === high) return this.#units[unit].format(high);
    const name = `${low} ${high} ${unit}`;
    const range = this.#ranges.get(name) ?? this.#units[unit].formatRange(low, high);
    this.#ranges.set(name, range);
    return range;
  }

  /** Fills the fields of a text. The result is plain text, escaped where it is inserted. */
  #filled(text: string, values: Readonly<Record<string, string>>): string {
    if (!text.includes("{{")) return text;
    const parts = this.#parts.get(text) ?? templateParts(text);
    this.#parts.set(text, parts);
    return parts
      .map((part) => (part.kind === "text" ? part.text : valueIn(values, part.name)))
      .join("");
  }

  #duration(seconds: number): string {
    const unit = unitOf(seconds);
    return this.#units[unit].format(Math.ceil(seconds / secondsIn[unit]));
  }
}

/** Reads own properties only: a name may be any text, even that of a method of all objects. */
function valueIn(values: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(values, name) ? (values[name] ?? "") : "";
}

/** Source: HTML Living Standard, section 13.3; quotes as well, for attributes. */
function escapeHtml(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (sign) => entities[sign] ?? "") : text;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

type TimeUnit = "second" | "minute" | "hour" | "day";

const secondsIn: Readonly<Record<TimeUnit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
};

/** Ranges that end by then are in seconds, because `0–2 minutes` says nothing. */
const secondsRangeMax = 120;

/** Step to which seconds of a range are rounded: estimates are not more precise. */
const secondsRangeStep = 5;

/** Returns the unit that gives about two digits at most. */
function unitOf(seconds: number): TimeUnit {
  if (seconds < 60) return "second";
  if (seconds < 2 * 3_600) return "minute";
  return seconds < 2 * 86_400 ? "hour" : "day";
}

/** Returns a locale that this process knows. For an invalid tag, English. */
function localeOf(tag: string): string {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? builtInLanguage;
  } catch {
    return builtInLanguage;
  }
}

/** The event that is open or opens next. Empty if there is none. Events are in order. */
function eventName({ events }: RoomPolicy, nowMs: number): string {
  return events.find(({ endsAtMs }) => endsAtMs > nowMs)?.name ?? "";
}

function opening(nowMs: number, opensInSeconds: number): string {
  return formatTimestamp(Math.round(nowMs / 1_000 + opensInSeconds) * 1_000_000);
}
