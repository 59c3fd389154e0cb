import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { millisecondsOf } from "../../core/base/timestamp.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { entryCountMax, textLengthMax } from "../../decide/rate-limit/query.js";
import type { PolicyFile as PolicyFileMessage } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { PolicyText } from "../../policy/parse.js";
import { AdminFailure } from "./failures.js";

/** Problems of one request that are told. */
export const requestProblemsMax = 20;

/** The most texts of a policy. */
export const explainedFilesMax = 1_000;

/** The bounds of a text. */
interface TextBounds {
  /** In UTF-16 units. */
  readonly charsMax: number;
  readonly isNeeded?: boolean;
}

/** The longest name of a domain, a rule or a limit in a request, in UTF-16 units. */
export const keyNameBounds = { charsMax: textLengthMax } as const;

/** The bounds of a number; both are taken. */
interface NumberRule {
  readonly min: number;
  readonly max: number;
}

/**
 * Reads the fields of a request: what is wrong is collected with its place, and thrown all at once.
 * Messages hold places and bounds, and never a value.
 */
export class RequestReader {
  readonly #problems: string[] = [];

  /** Notes a problem of a place. */
  report(place: string, what: string): void {
    if (this.#problems.length < requestProblemsMax) this.#problems.push(`${place}: ${what}`);
  }

  /** @throws AdminFailure with all problems, where there are any */
  end(): void {
    if (this.#problems.length > 0) throw new AdminFailure("invalid", this.#problems.join("; "));
  }

  text(place: string, value: string, { charsMax, isNeeded = false }: TextBounds): string {
    if (isNeeded && value.trim() === "") this.report(place, "required");
    if (value.length > charsMax) this.report(place, `it has more than ${charsMax} characters`);
    return value;
  }

  /** A number of a page, a list: 0 takes the default. */
  count(
    place: string,
    value: number,
    rule: { readonly max: number; readonly defaultValue: number },
  ) {
    if (value < 0 || value > rule.max) this.report(place, `must be from 0 to ${rule.max}`);
    return value === 0 ? rule.defaultValue : value;
  }

  /** A whole number that came with 64 bits. */
  whole(place: string, value: bigint, { min, max }: NumberRule): number {
    if (value < BigInt(min) || value > BigInt(max)) {
      this.report(place, `must be a whole number from ${min} to ${max}`);
      return min;
    }
    return Number(value);
  }

  /** A number above 0 up to `max`; 0 takes the default where there is something. */
  part(
    place: string,
    value: number,
    rule: { readonly max: number; readonly defaultValue?: number },
  ) {
    if (value === 0 && rule.defaultValue !== undefined) return rule.defaultValue;
    // Not a number is neither.
    if (!(value > 0 && value <= rule.max)) {
      this.report(place, `must be above 0 and at most ${rule.max}`);
    }
    return value;
  }

  /** A version of a record, as it was told. */
  version(place: string, value: bigint): number {
    return this.whole(place, value, { min: 0, max: Number.MAX_SAFE_INTEGER });
  }

  /** A time, in milliseconds since 1970; undefined where there is none. */
  epochMs(place: string, value: Timestamp | undefined): number | undefined {
    if (value === undefined) return undefined;
    const ms = Math.ceil(millisecondsOf(value));
    if (Math.abs(ms) <= epochMsMax) return ms;
    this.report(place, "must be a time in the years 0 to 9999");
    return undefined;
  }

  /** The entries of a descriptor. */
  entries(
    place: string,
    entries: readonly { readonly key: string; readonly value: string }[],
  ): readonly DescriptorEntry[] {
    if (entries.length === 0) this.report(place, "needs an entry");
    if (entries.length > entryCountMax) {
      this.report(place, `it has more than ${entryCountMax} entries`);
      return [];
    }
    return entries.map(({ key, value }, i) => {
      if (key === "") this.report(`${place}[${i}].key`, "required");
      if (key.length + value.length > textLengthMax) {
        this.report(`${place}[${i}]`, `it has more than ${textLengthMax} characters`);
      }
      return { key, value };
    });
  }
}

/** The last millisecond of the year 9999. Source: google.protobuf.Timestamp. */
const epochMsMax = 253_402_300_799_999;

/** A policy's texts; how long they may be the parser itself looks at. */
export function readFiles(
  place: string,
  files: readonly PolicyFileMessage[],
): readonly PolicyText[] {
  const reader = new RequestReader();
  if (files.length > explainedFilesMax)
    reader.report(place, `it has more than ${explainedFilesMax}`);
  reader.end();
  const names = new Set<string>();
  files.forEach(({ file }, i) => {
    const name = reader.text(`${place}[${i}].file`, file, { charsMax: 1_024, isNeeded: true });
    if (names.has(name)) reader.report(`${place}[${i}].file`, "another one has the same name");
    names.add(name);
  });
  reader.end();
  return files.map(({ file, text }) => ({ file, text }));
}
