import { GenerationalMap } from "../../core/collections/generational-map.js";
import {
  decodeTicket,
  encodeTicket,
  type SessionTicket,
  type Ticket,
  type TicketKey,
  type TicketScope,
  ticketLengthMax,
  type WaitingTicket,
} from "../../core/waiting-room/ticket.js";
import { addressAttribute } from "../../policy/cel/request-facts.js";
import { formatIpAddress, parseSourceAddress } from "../../policy/text/network.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { AdmissionRequest } from "../admission/admission-call.js";
import { cookieValues } from "./room-cookies.js";

/** The tickets in a request's cookies. */
export interface TicketsRead {
  /** The one that was used last. Undefined: none. */
  readonly session: SessionTicket | undefined;
  /** The one with the smallest number, so that no visitor loses a place. Undefined: none. */
  readonly waiting: WaitingTicket | undefined;
  /** Whether a cookie with the room's name was not issued by Headgate. */
  readonly isForged: boolean;
}

/** Maximum number of verified tickets cached per room, about 300 bytes each. */
const verifiedMax = 16_384;

const noTickets: TicketsRead = { session: undefined, waiting: undefined, isForged: false };

/** Reads tickets of one room from cookies, and writes them. */
export class RoomTickets {
  readonly #policy: Pick<RoomPolicy, "name" | "cookie">;
  /** The first one signs. */
  readonly #keys: () => readonly TicketKey[];
  /** Verified tickets, by address and text: a signature takes 5 us for each request. */
  #verified = new GenerationalMap<string, Ticket>(verifiedMax);
  #verifiedBy: readonly TicketKey[] = [];

  constructor(policy: Pick<RoomPolicy, "name" | "cookie">, keys: () => readonly TicketKey[]) {
    this.#policy = policy;
    this.#keys = keys;
  }

  /** Whether tickets can be issued. False until a key is known. */
  get canSign(): boolean {
    return this.#keys().length > 0;
  }

  /** Returns the tickets in the cookies of a request. */
  ofRequest(request: Pick<AdmissionRequest, "headers" | "attributes">): TicketsRead {
    const values = cookieValues(request.headers.get("cookie"), this.#policy.cookie.name);
    if (values.length === 0) return noTickets;
    const scope = this.scopeOf(request);
    let session: SessionTicket | undefined;
    let waiting: WaitingTicket | undefined;
    let isForged = false;
    for (const value of values) {
      const ticket = this.#read(value, scope);
      if (ticket === undefined) {
        // An empty cookie was removed by `noCookie`.
        isForged ||= value !== "" && this.canSign;
      } else if (ticket.kind === "session") {
        if (session === undefined || ticket.second > session.second) session = ticket;
      } else if (waiting === undefined || ticket.number < waiting.number) {
        waiting = ticket;
      }
    }
    return { session, waiting, isForged };
  }

  #read(text: string, scope: TicketScope): Ticket | undefined {
    if (text.length > ticketLengthMax) return undefined;
    const keys = this.#keys();
    if (keys !== this.#verifiedBy) {
      this.#verified = new GenerationalMap(verifiedMax);
      this.#verifiedBy = keys;
    }
    const name = `${scope.address ?? ""} ${text}`;
    const known = this.#verified.get(name);
    if (known !== undefined) return known;
    const ticket = decodeTicket(text, scope, keys);
    if (ticket !== undefined && this.#verified.wantsMore()) this.#verified.set(name, ticket);
    return ticket;
  }

  /** Reads a ticket of any visitor. Undefined: not valid, or bound to an address. */
  read(text: string): Ticket | undefined {
    return decodeTicket(text, { room: this.#policy.name, address: undefined }, this.#keys());
  }

  /** Undefined while no key is known. */
  write(ticket: Ticket, scope: TicketScope): string | undefined {
    const [key] = this.#keys();
    return key === undefined ? undefined : encodeTicket(ticket, scope, key);
  }

  /** Returns the scope that a request's tickets are signed for. */
  scopeOf({ attributes }: Pick<AdmissionRequest, "attributes">): TicketScope {
    const { name, cookie } = this.#policy;
    const bits = cookie.addressBits;
    return {
      room: name,
      address:
        bits === undefined ? undefined : addressPrefix(attributes.get(addressAttribute), bits),
    };
  }
}

/** Example: `203.0.113.77:4242` with 24 bits is `203.0.113.0`. Empty if it is not an address. */
export function addressPrefix(
  source: unknown,
  { v4, v6 }: { readonly v4: number; readonly v6: number },
): string {
  const address = typeof source === "string" ? parseSourceAddress(source) : undefined;
  if (address === undefined) return "";
  const bits = address.length === 4 ? v4 : v6;
  const kept = address.map((byte, i) => {
    const keptBits = Math.min(8, Math.max(0, bits - i * 8));
    return byte & (0xff << (8 - keptBits)) & 0xff;
  });
  return formatIpAddress(kept);
}
