import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeTicket,
  encodeTicket,
  type Ticket,
  type TicketKey,
  type TicketScope,
  ticketLengthMax,
} from "../../../../src/core/waiting-room/ticket.js";
import { propertyRuns } from "../../../support/seeds.js";

const scope: TicketScope = { room: "sale", address: undefined };

const place: Ticket = {
  kind: "waiting",
  lineId: 0xdead_beef,
  number: 2 ** 48 - 1,
  second: 2 ** 31 - 1,
  announced: { lowSeconds: 540, middleSeconds: 600, highSeconds: 660, rangeFactor: 2 },
};

const session: Ticket = { kind: "session", lineId: 7, number: 12, session: 999_999, second: 60 };

describe("encodeTicket() and decodeTicket()", () => {
  it("bring back every ticket, in at most the longest text", () => {
    const tickets = fc.oneof(waitingTickets(), sessionTickets());
    const bringsBack = (ticket: Ticket): void => {
      const text = encodeTicket(ticket, scope, newKey);
      expect(text.length).toBeLessThanOrEqual(ticketLengthMax);
      expect(decodeTicket(text, scope, [newKey])).toEqual(ticket);
    };
    fc.assert(fc.property(tickets, bringsBack), propertyRuns(500));
    expect(encodeTicket(place, scope, newKey)).toHaveLength(ticketLengthMax);
  });

  it("round ranges outwards and bound them", () => {
    const announced = { lowSeconds: 1.9, middleSeconds: 2.5, highSeconds: 1e12, rangeFactor: 1e9 };
    const text = encodeTicket({ ...place, announced }, scope, newKey);
    expect(decodeTicket(text, scope, [newKey])).toMatchObject({
      announced: { lowSeconds: 1, middleSeconds: 3, highSeconds: 2 ** 24 - 2 },
    });
  });

  it("take tickets of any of the keys", () => {
    const text = encodeTicket(session, scope, oldKey);
    expect(decodeTicket(text, scope, [newKey, oldKey])).toEqual(session);
    expect(decodeTicket(text, scope, [newKey])).toBeUndefined();
  });

  it("tell keys with one id apart", () => {
    const twin = hmacKey(oldKey.id, "another secret");
    const text = encodeTicket(session, scope, oldKey);
    expect(decodeTicket(text, scope, [twin, oldKey])).toEqual(session);
    expect(decodeTicket(text, scope, [twin])).toBeUndefined();
  });

  it.each([
    { name: "another room", other: { room: "sale2", address: undefined } },
    { name: "an address where there was none", other: { room: "sale", address: "192.0.2.0/24" } },
    { name: "a name that looks like an address", other: { room: "sale\n", address: undefined } },
  ])("refuse a ticket for $name", ({ other }) => {
    const text = encodeTicket(place, scope, newKey);
    expect(decodeTicket(text, other, [newKey])).toBeUndefined();
  });

  it("refuse a ticket of another address", () => {
    const bound = { room: "sale", address: "192.0.2.0/24" };
    const text = encodeTicket(place, bound, newKey);
    expect(decodeTicket(text, bound, [newKey])).toEqual(place);
    expect(decodeTicket(text, { ...bound, address: "198.51.100.0/24" }, [newKey])).toBeUndefined();
    expect(decodeTicket(text, scope, [newKey])).toBeUndefined();
  });

  it.each([{ ticket: place }, { ticket: session }])(
    "refuse a $ticket.kind ticket with any bit flipped, and any part of it",
    ({ ticket }) => {
      const text = encodeTicket(ticket, scope, newKey);
      const bytes = Buffer.from(text, "base64url");
      for (let bit = 0; bit < 8 * bytes.length; bit += 1) {
        const flipped = Buffer.from(bytes);
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        expect(decodeTicket(flipped.toString("base64url"), scope, [newKey])).toBeUndefined();
      }
      for (let length = 0; length < text.length; length += 1) {
        expect(decodeTicket(text.slice(0, length), scope, [newKey])).toBeUndefined();
      }
    },
  );

  it("give one text alone to a ticket", () => {
    const text = encodeTicket(session, scope, newKey);
    for (const other of [`${text}=`, `${text} `, text.replaceAll("-", "+"), `${text}A`]) {
      if (other !== text) expect(decodeTicket(other, scope, [newKey])).toBeUndefined();
    }
  });

  it("refuse any other text, without throwing", () => {
    const texts = fc.oneof(
      fc.string({ maxLength: 100 }),
      fc.string({ unit: "binary", maxLength: 100 }),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString("base64url")),
    );
    const refuses = (text: string): void => {
      expect(decodeTicket(text, scope, [newKey, oldKey])).toBeUndefined();
    };
    fc.assert(fc.property(texts, refuses), propertyRuns(2_000));
  });

  it("read nothing of a text that is too long", () => {
    let macs = 0;
    const counting: TicketKey = {
      id: newKey.id,
      mac: (bytes) => {
        macs += 1;
        return newKey.mac(bytes);
      },
    };
    const text = encodeTicket(place, scope, newKey);
    expect(decodeTicket(text.repeat(1_000), scope, [counting])).toBeUndefined();
    expect(macs).toBe(0);
  });
});

const newKey = hmacKey(1, "new secret");

const oldKey = hmacKey(0, "old secret");

function hmacKey(id: number, secret: string): TicketKey {
  return { id, mac: (bytes) => createHmac("sha256", secret).update(bytes).digest() };
}

function waitingTickets(): fc.Arbitrary<Ticket> {
  const seconds = fc.integer({ min: 0, max: 2 ** 24 - 2 });
  const announced = fc.record({
    lowSeconds: seconds,
    middleSeconds: seconds,
    highSeconds: seconds,
    rangeFactor: fc.constantFrom(0.25, 1, 2, 8),
  });
  return fc.record({
    kind: fc.constant("waiting" as const),
    lineId: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    number: fc.maxSafeNat().map((number) => number % 2 ** 48),
    second: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    announced: fc.option(announced, { nil: undefined }),
  });
}

function sessionTickets(): fc.Arbitrary<Ticket> {
  return fc.record({
    kind: fc.constant("session" as const),
    lineId: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    number: fc.maxSafeNat().map((number) => number % 2 ** 48),
    session: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    second: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  });
}
