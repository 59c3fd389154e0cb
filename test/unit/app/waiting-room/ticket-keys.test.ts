import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import { openTicketKeys, type TicketKeys } from "../../../../src/app/waiting-room/ticket-keys.js";
import {
  decodeTicket,
  encodeTicket,
  type Ticket,
} from "../../../../src/core/waiting-room/ticket.js";
import { replaceFile } from "../../../support/replace-file.js";
import { waitFor } from "../../../support/wait.js";
import { watchClock } from "../../../support/watch-clock.js";

const ticket: Ticket = { kind: "session", lineId: 1, number: 2, session: 3, second: 4 };
const scope = { room: "sale", address: undefined };
const first = "a".repeat(32);
const second = "b".repeat(32);

let folder: string;
let path: string;
let events: LogEvent[];
let opened: TicketKeys[];

const note = (event: LogEvent): void => {
  events.push(event);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-keys-"));
  path = join(folder, "keys");
  events = [];
  opened = [];
});

afterEach(async () => {
  for (const keys of opened) keys.close();
  await rm(folder, { recursive: true });
});

async function open(from: string | undefined = path): Promise<TicketKeys> {
  const keys = await openTicketKeys({ path: from, clock: watchClock, logger });
  opened.push(keys);
  return keys;
}

function sign(keys: TicketKeys, secret?: Buffer): string {
  const [key] = keys.keysOf(secret);
  return encodeTicket(ticket, scope, key ?? expect.fail("there is a key"));
}

describe("openTicketKeys()", () => {
  it("signs with the first key of the file, verifies with all, and follows changes", async () => {
    await writeFile(path, `${first}\n`);
    const keys = await open();
    const before = sign(keys);
    await replaceFile(path, `${second}\n\n${first}\n`);
    await waitFor("the new keys are read", () => keys.keysOf(undefined).length === 2);
    expect(sign(keys)).not.toBe(before);
    expect(decodeTicket(before, scope, keys.keysOf(undefined))).toEqual(ticket);
    await replaceFile(path, `${second}\n`);
    await waitFor("the old key is gone", () => keys.keysOf(undefined).length === 1);
    expect(decodeTicket(before, scope, keys.keysOf(undefined))).toBeUndefined();
    expect(JSON.stringify(events)).not.toContain(first);
  });

  it("keeps its keys when the file becomes wrong, and says so", async () => {
    await writeFile(path, first);
    const keys = await open();
    const before = sign(keys);
    await replaceFile(path, "short");
    await waitFor("it is told", () => events.some(({ event }) => event === "ticketKeysRefused"));
    expect(sign(keys)).toBe(before);
  });

  it.each([
    { text: "", problem: "has no key" },
    { text: `${first}\nshort`, problem: "has a key below 32 characters" },
    { text: Array.from({ length: 9 }, () => first).join("\n"), problem: "has more than 8 keys" },
    { text: "x".repeat(20_000), problem: "has more than 16384 bytes" },
    { text: undefined, problem: "cannot be read: " },
  ])("does not start with a file that $problem", async ({ text, problem }) => {
    if (text !== undefined) await writeFile(path, text);
    await expect(open()).rejects.toThrow(`HEADGATE_WAITING_ROOM_KEYS_FILE ${problem}`);
  });

  it("signs with the room's own secret where there is no file", async () => {
    const keys = await openTicketKeys({ path: undefined, clock: watchClock, logger });
    expect(keys.keysOf(undefined)).toEqual([]);
    const one = sign(keys, Buffer.alloc(32, 1));
    expect(sign(keys, Buffer.alloc(32, 1))).toBe(one);
    expect(sign(keys, Buffer.alloc(32, 2))).not.toBe(one);
  });
});
