import { ServiceError } from "../../../core/base/errors.js";
import type { JsonObject } from "../../../core/base/json.js";
import {
  type AuditFollowing,
  type AuditText,
  auditEntriesMax,
  type ChangeOutcome,
  goneRecordsMax,
  type MissingRecord,
  pageBytesMax,
  pageRecordsMax,
  type RecordKind,
  type RecordRecovery,
  type RecordStore,
  type RecordsPage,
  type Restoration,
  recordKinds,
  recordsMax,
  type SeenRecords,
  type SharedRecord,
  type StoreChange,
} from "../../coordination/record-store.js";
import type { ScriptReply, StoreScript } from "../scripts/connection.js";
import { type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";
import { readAudit, readPage } from "./record-pages.js";
import {
  auditScript,
  changeScript,
  noteScript,
  readScript,
  restoreAuditScript,
  restoreScript,
  sealScript,
} from "./records-script.js";

/** Records in Redis: hashes with one hash tag. They take megabytes. Calls may be repeated. */
export class RedisRecords implements RecordStore, RecordRecovery {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  get recovery(): RecordRecovery {
    return this;
  }

  async state(): Promise<string> {
    // No store has this state, so each returns its own.
    const page = await this.read("policy", { version: 0, state: "-" });
    if (page?.kind !== "other") throw new ServiceError("STORE_PROTOCOL");
    return page.state;
  }

  async read(kind: RecordKind, { version, state }: SeenRecords): Promise<RecordsPage | undefined> {
    const args = [kind, String(version), String(pageRecordsMax), String(pageBytesMax), state];
    const reply = await this.#run(readScript, { keys: recordKeys(kind), args });
    return reply === undefined ? undefined : readPage(kind, replyBytes(reply));
  }

  async change(request: StoreChange): Promise<ChangeOutcome | undefined> {
    const { kind, id, value, expectedVersion, audit, name, seen } = request;
    const reply = await this.#run(changeScript, {
      keys: [...recordKeys(kind), "records:audit"],
      args: [
        kind,
        id,
        String(expectedVersion),
        name,
        String(recordsMax[kind]),
        String(goneRecordsMax),
        value === undefined ? "0" : "1",
        value === undefined ? "" : JSON.stringify(value),
        String(auditEntriesMax),
        audit === undefined ? "" : JSON.stringify(audit),
        seen.state,
        String(seen.version),
      ],
    });
    return parseOutcome(reply);
  }

  async note(audit: JsonObject): Promise<void> {
    const name = this.#store.random.id();
    const args = [name, String(auditEntriesMax), JSON.stringify(audit)];
    const reply = await this.#run(noteScript, { keys: auditKeys, args });
    if (replyBytes(reply).toString() !== "noted") throw new ServiceError("STORE_PROTOCOL");
  }

  audit(before: number, countMax: number): Promise<readonly AuditText[]> {
    const most = Math.min(before, Number.MAX_SAFE_INTEGER);
    return this.#readAudit([most, countMax, pageBytesMax].map(String));
  }

  followAudit(following: AuditFollowing): Promise<readonly AuditText[]> {
    const { since, state, countMax, bytesMax } = following;
    const numbers = [Number.MAX_SAFE_INTEGER, countMax, bytesMax, since];
    return this.#readAudit([...numbers.map(String), state]);
  }

  async restore(kind: RecordKind, { missing, floor }: Restoration) {
    let state = "";
    const restored: SharedRecord[] = [];
    for (let at = 0; at < missing.length; ) {
      const page = pageFrom(missing, at);
      at += page.length;
      const name = this.#store.random.id();
      const args = [kind, name, String(floor), ...page.flatMap(restoreArgs)];
      const reply = await this.#run(restoreScript, { keys: recordKeys(kind), args });
      const flags = replyBytes(reply).toString("latin1");
      for (const [index, { record }] of page.entries()) {
        if (record !== undefined && flags[index] === "1") restored.push(record);
      }
      state = `~${name}`;
    }
    return { state, restored };
  }

  async restoreAudit(entries: readonly AuditText[], newestCount: number): Promise<number> {
    const args = [String(auditEntriesMax), String(newestCount)];
    for (const { number, epochMs, text } of entries) {
      args.push(String(number), String(epochMs), text);
    }
    const count = await this.#run(restoreAuditScript, { keys: auditKeys, args });
    if (typeof count !== "number") throw new ServiceError("STORE_PROTOCOL");
    return count;
  }

  async seal(state: string): Promise<string | undefined> {
    const next = this.#store.random.id();
    const args = [state, next, ...recordKinds];
    const reply = await this.#run(sealScript, { keys: ["records:counters"], args });
    return replyBytes(reply).toString() === next ? next : undefined;
  }

  async #readAudit(args: readonly string[]): Promise<readonly AuditText[]> {
    return readAudit(replyBytes(await this.#run(auditScript, { keys: auditKeys, args })));
  }

  #run(
    script: StoreScript,
    { keys, args }: { readonly keys: readonly string[]; readonly args: readonly string[] },
  ): Promise<ScriptReply> {
    return runFleetScript(this.#store, { script, keys, args });
  }
}

const auditKeys = ["records:audit", "records:counters"] as const;

function recordKeys(kind: RecordKind): readonly string[] {
  return [
    `records:${kind}`,
    `records:${kind}:versions`,
    `records:${kind}:gone`,
    "records:counters",
  ];
}

/** Returns as many records as one call may put back, but at least one. */
function pageFrom(missing: readonly MissingRecord[], from: number): readonly MissingRecord[] {
  const page = missing.slice(from, from + pageRecordsMax);
  let bytes = 0;
  const end = page.findIndex(({ record }, index) => {
    bytes += record === undefined ? 0 : JSON.stringify(record.value).length;
    return index > 0 && bytes > pageBytesMax;
  });
  return end < 0 ? page : page.slice(0, end);
}

function restoreArgs({ id, version, record }: MissingRecord): readonly string[] {
  if (record === undefined) return [id, String(version), "0", ""];
  return [id, String(version), "1", JSON.stringify(record.value)];
}

/** Undefined: the store is not in the state that the caller knows. */
function parseOutcome(reply: ScriptReply): ChangeOutcome | undefined {
  const [, kind, digits] =
    /^(changed|conflict|full|lost) (\d{1,16})$/.exec(replyBytes(reply).toString()) ?? [];
  const version = Number(digits);
  if (kind === "lost") return undefined;
  if (kind === "changed" || kind === "conflict") return { kind, version };
  if (kind === "full") return { kind };
  throw new ServiceError("STORE_PROTOCOL");
}
