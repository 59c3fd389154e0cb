import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { millisecondsOf } from "../../core/base/timestamp.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { entryCountMax, textLengthMax } from "../../decide/rate-limit/query.js";
import type { PolicyFile as PolicyFileMessage } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { PolicyText } from "../../policy/parse.js";
import { AdminFailure } from "./failures.js";

/** Maximum number of problems that are reported for one request. */
export const requestProblemsMax = 20;

/** Maximum number of texts of a policy. */
export const explainedFilesMax = 1_000;

/** The bounds of a text. */
interface TextBounds {
  /** In UTF-16 units. */
  readonly charsMax: number;
  readonly isNeeded?: boolean;
}

/** Maximum length of a domain's, rule's or limit's name in a request, in UTF-16 units. */
export const keyNameBounds = { charsMax: textLengthMax } as const;

/** The bounds of a number, both inclusive. */
interface NumberRule {
  readonly min: number;
  readonly max: number;
}

/**
 * Reads the fields of a request. Collects problems with their places, and throws all at once.
 * Messages contain places and bounds, and never a value.
 */
export class RequestReader {
  readonly #problems: string[] = [];

  /** Adds a problem of a place. */
  report(place: string, what: string): void {
    if (this.#problems.length < requestProblemsMax) this.#problems.push(`${place}: ${what}`);
  }

  /** @throws AdminFailure with all problems, if there are any */
  end(): void {
    if (this.#problems.length > 0) throw new AdminFailure("invalid", this.#problems.join("; "));
  }

  text(place: string, value: string, { charsMax, isNeeded = false }: TextBounds): string {
    if (isNeeded && value.trim() === "") this.report(place, "required");
    if (value.length > charsMax) this.report(place, `it has more than ${charsMax} characters`);
    return value;
  }

  /** Reads a number of entries of a page or list. 0 means the default. */
  count(
    place: string,
    value: number,
    rule: { readonly max: number; readonly defaultValue: number },
  ) {
    if (value < 0 || value > rule.max) this.report(place, `must be from 0 to ${rule.max}`);
    return value === 0 ? rule.defaultValue : value;
  }

  /** Reads a 64-bit integer. */
  whole(place: string, value: bigint, { min, max }: NumberRule): number {
    if (value < BigInt(min) || value > BigInt(max)) {
      this.report(place, `must be a whole number from ${min} to ${max}`);
      return min;
    }
    return Number(value);
  }

  /** Reads a number above 0 and at most `max`. 0 means the default, if there is one. */
  part(
    place: string,
    value: number,
    rule: { readonly max: number; readonly defaultValue?: number },
  ) {
    if (value === 0 && rule.defaultValue !== undefined) return rule.defaultValue;
    // NaN fails this check, too.
    if (!(value > 0 && value <= rule.max)) {
      this.report(place, `must be above 0 and at most ${rule.max}`);
    }
    return value;
  }

  /** Reads the version of a record. */
  version(place: string, value: bigint): number {
    return this.whole(place, value, { min: 0, max: Number.MAX_SAFE_INTEGER });
  }

  /** Reads a time, in milliseconds since 1970. Undefined if there is none. */
  epochMs(place: string, value: Timestamp | undefined): number | undefined {
    if (value === undefined) return undefined;
    const ms = Math.ceil(millisecondsOf(value));
    if (Math.abs(ms) <= epochMsMax) return ms;
    this.report(place, "must be a time in the years 0 to 9999");
    return undefined;
  }

  /** Reads the entries of a descriptor. */
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

/** Reads a policy's texts. The parser itself checks their length. */
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
