import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import { hitsMax } from "../../core/limits/limit.js";
import { multiplierMax, type Override, type OverrideEffect } from "../../core/limits/override.js";

/**
 * Returns the id of an override's record. Ids are separate for each domain, so that they do not
 * reveal the overrides of other domains.
 *
 * @param digest a cryptographic hash in hexadecimal; a domain may be any text
 */
export function overrideRecordId(
  { domain, id }: Pick<Override, "domain" | "id">,
  digest: (text: string) => string,
): string {
  return `${id}.${digest(domain).slice(0, domainDigits)}`;
}

/** Hexadecimal digits of a domain's digest: 128 bits. */
const domainDigits = 32;

/** Converts an override to the format of a record. */
export function overrideToJson(override: Override): JsonObject {
  const { id, domain, entries, isPrefix, limitName, effect, expiresEpochMs } = override;
  const { reason, author, createdEpochMs } = override;
  return {
    id,
    domain,
    entries: entries.map(({ key, value }) => [key, value]),
    isPrefix,
    effect: { ...effect },
    reason,
    author,
    createdEpochMs,
    ...(limitName === undefined ? {} : { limitName }),
    ...(expiresEpochMs === undefined ? {} : { expiresEpochMs }),
  };
}

/** Parses the override of a record. Undefined for a later version and for an invalid record. */
export function overrideFromJson(value: JsonObject): Override | undefined {
  const { id, domain, isPrefix, reason, author, createdEpochMs } = value;
  const { limitName, expiresEpochMs } = value;
  const entries = readEntries(value["entries"]);
  const effect = readEffect(value["effect"]);
  if (typeof id !== "string" || typeof domain !== "string") return undefined;
  if (entries === undefined || effect === undefined) return undefined;
  if (typeof isPrefix !== "boolean" || typeof createdEpochMs !== "number") return undefined;
  if (typeof reason !== "string" || typeof author !== "string") return undefined;
  if (limitName !== undefined && typeof limitName !== "string") return undefined;
  if (expiresEpochMs !== undefined && typeof expiresEpochMs !== "number") return undefined;
  return {
    id,
    domain,
    entries,
    isPrefix,
    effect,
    reason,
    author,
    createdEpochMs,
    ...(limitName === undefined ? {} : { limitName }),
    ...(expiresEpochMs === undefined ? {} : { expiresEpochMs }),
  };
}

function readEntries(value: JsonValue | undefined): Override["entries"] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const entries: { readonly key: string; readonly value: string }[] = [];
  for (const item of value) {
    if (!Array.isArray(item)) return undefined;
    const [key, text] = item;
    if (typeof key !== "string" || typeof text !== "string") return undefined;
    entries.push({ key, value: text });
  }
  return entries;
}

function readEffect(value: JsonValue | undefined): OverrideEffect | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kind, hits, burst, by } = value;
  if (kind === "frozen") return { kind };
  if (kind === "amount" && isHits(hits) && isHits(burst)) return { kind, hits, burst };
  if (kind !== "multiplier" || typeof by !== "number") return undefined;
  return by > 0 && by <= multiplierMax ? { kind, by } : undefined;
}

function isHits(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= hitsMax;
}
