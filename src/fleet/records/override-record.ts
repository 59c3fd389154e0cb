import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import { hitsMax } from "../../core/limits/limit.js";
import { multiplierMax, type Override, type OverrideEffect } from "../../core/limits/override.js";

/**
 * The name of an override's record: ids are each domain's own, so that nobody learns which ones
 * others have.
 *
 * @param digest a strong hash of a text, in hexadecimal: a domain may be any text
 */
export function overrideRecordId(
  { domain, id }: Pick<Override, "domain" | "id">,
  digest: (text: string) => string,
): string {
  return `${id}.${digest(domain).slice(0, domainDigits)}`;
}

/** Digits of a domain's digest: 128 bits. */
const domainDigits = 32;

/** An override as a record has it. */
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

/** The override of a record; undefined for what another version, or nobody of ours, has written. */
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
