import { createHash, createHmac } from "node:crypto";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { unknownPeer } from "../../src/core/base/peer.js";
import { encodeTicket, type Ticket, type TicketKey } from "../../src/core/waiting-room/ticket.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type { AdmissionDecider } from "../../src/decide/admission/admission-call.js";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { RoomAdmission } from "../../src/decide/waiting-room/room-admission.js";
import { RoomLines } from "../../src/fleet/waiting-room/room-lines.js";
import type { StoreRoomLine } from "../../src/fleet/waiting-room/store-room-line.js";
import {
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import type { RoomPolicy } from "../../src/policy/waiting-rooms/room-policy.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { type RoomStore, roomVisitsMax } from "../../src/store/coordination/room-store.js";
import type { BidiHandler, BidiReader, UnaryHandler } from "../../src/wire/grpc/service.js";
import { createTestDecider } from "../support/decider.js";
import type { TestRedisStore } from "../support/redis-store.js";
import { roomsPolicy, saleRoom } from "../support/room-rig.js";
import { waitFor } from "../support/wait.js";
import { Requests } from "./calls.js";
import { createHandler, createPolicy } from "./in-process.js";
import { layOut } from "./report.js";
import { type Cost, type CostWorld, measure } from "./room-cost.js";

/** Who waits in the room while rows are measured. */
const waitingCount = 1_000_000;

/** Each of them asks once in it. */
const refreshSeconds = 20;

/** Visitors in one turn of the event loop: of a calm replica, and of a busy one. */
const sizes = [16, 128] as const;

/** What a page may have when it is compressed. */
const pageBytesMax = 12_288;

/** Sessions whose requests are measured, and keys of the decisions beside. */
const [sessionCount, keyCount] = [8_000, 20_000];

const room: RoomPolicy = saleRoom({
  name: "path",
  activeUsersMax: sessionCount,
  sessionMs: 3_600_000,
  waitingMax: 8_000_000,
  refreshMs: refreshSeconds * 1_000,
  // Nobody loses a place while rows are measured.
  missedRefreshesMax: 500,
});

const key: TicketKey = {
  id: 1,
  mac: (bytes) => createHmac("sha256", "bench").update(bytes).digest(),
};

interface Path {
  readonly world: CostWorld;
  readonly line: StoreRoomLine;
  /** Exchanges of a policy with the room, and of one without. */
  readonly open: BidiHandler;
  readonly openPlain: BidiHandler;
  readonly decide: UnaryHandler;
  readonly cookies: { readonly waiting: Buffer; readonly session: Buffer };
  nextVisit: number;
}

/**
 * The whole way of a visitor in one process, from the bytes of ext_proc to those of the answer,
 * with a real leader and a real Redis. Decisions of rate limits go the same way beside.
 */
export async function tellRoomPath(
  world: CostWorld & { readonly opened: TestRedisStore },
  store: RoomStore,
): Promise<string> {
  const lines = new RoomLines({
    ...{ store, clock: systemClock, random: systemRandom, turnTimeoutMs: 20_000 },
    load: () => undefined,
  });
  lines.change([room]);
  const line = lines.line(room.name);
  if (line === undefined) throw new Error("the room has a line");
  const { head } = await waitFor("a leader", () => line.head && line);
  await fill(store, head?.lineId ?? 0);
  const isCounted = () => (line.status?.waitingCount ?? 0) >= waitingCount - sessionCount;
  await waitFor("the leader has counted all", isCounted, { withinMs: 60_000 });
  const policy = roomsPolicy([room]);
  const plain = roomsPolicy([]);
  const path: Path = {
    world,
    line,
    open: exchanges(roomAdmission(policy, line)),
    openPlain: exchanges(roomAdmission(plain, line)),
    decide: createHandler(createPolicy({ name: "", keyCount }), world.opened.store),
    cookies: signAll(line),
    nextVisit: 0,
  };
  const text = await tellRows(path);
  await lines.stop();
  return text;
}

async function tellRows(path: Path): Promise<string> {
  const rows: (readonly string[])[] = [];
  const costs = new Map<string, Cost>();
  for (const size of sizes) {
    const { refreshRequest, positionRequest, joinRequest, sessionRequest, plainRequest } = requests;
    const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["refresh, page", () => visit(path, size, refreshRequest)],
      ["refresh, JSON for the page's script", () => visit(path, size, positionRequest)],
      ["join, page", () => ask(path.open, size, () => joinRequest)],
      ["rate-limit decision", () => decide(path, size)],
      ["request with a session", () => inside(path, size, sessionRequest)],
      ["the same, no room in the policy", () => ask(path.openPlain, size, () => plainRequest)],
    ];
    for (const [name, call] of calls) {
      const cost = await measure(path.world, size, async () => void (await call()));
      costs.set(`${name} ${size}`, cost);
      rows.push([`${name}, ${size} in a turn`, cost.redisUs.toFixed(2), cost.ownUs.toFixed(2)]);
    }
  }
  const header = ["bytes to bytes", "Redis us", "replica us"];
  return [layOut([header, ...rows]), tellTargets(costs, await pageOf(path))].join("\n\n");
}

function tellTargets(costs: ReadonlyMap<string, Cost>, page: Buffer): string {
  const of = (name: string, size: number): Cost =>
    costs.get(`${name} ${size}`) ?? { redisUs: Number.NaN, ownUs: Number.NaN };
  const [few, many] = sizes;
  const ratio = (one: string, other: string, size: number): string =>
    (of(one, size).ownUs / of(other, size).ownUs).toFixed(2);
  const rate = (us: number): string => Math.round(1e6 / us).toLocaleString("en-US");
  const replicas = (us: number): string => {
    return ((waitingCount / refreshSeconds / 1e6) * us).toFixed(1);
  };
  const [refresh, script] = ["refresh, page", "refresh, JSON for the page's script"];
  const sizeOf = (bytes: Buffer): string => bytes.length.toLocaleString("en-US");
  const wanted = `${rate(1e6 / (waitingCount / refreshSeconds))} together`;
  return layOut([
    ["", "target", "measured"],
    [
      `refreshes/s of one core here, pages, ${many} in a turn`,
      wanted,
      rate(of(refresh, many).ownUs),
    ],
    [`refreshes/s of one core here, JSON, ${many} in a turn`, wanted, rate(of(script, many).ownUs)],
    [`refreshes/s of one Redis, ${many} in a turn`, wanted, rate(of(script, many).redisUs)],
    [`refreshes/s of one Redis, ${few} in a turn`, wanted, rate(of(script, few).redisUs)],
    ["cores of replicas for all of them, pages", "", replicas(of(refresh, many).ownUs)],
    ["cores of replicas for all of them, JSON", "", replicas(of(script, many).ownUs)],
    [
      "a join with its page next to a decision",
      "",
      ratio("join, page", "rate-limit decision", many),
    ],
    [
      "a session next to a request without rooms",
      "",
      ratio("request with a session", "the same, no room in the policy", many),
    ],
    ["bytes of a page", "", sizeOf(page)],
    ["bytes of a page, gzip", `at most ${pageBytesMax}`, sizeOf(gzipSync(page))],
    ["bytes of a page, brotli", `at most ${pageBytesMax}`, sizeOf(brotliCompressSync(page))],
  ]);
}

async function fill(store: RoomStore, lineId: number): Promise<void> {
  const empty = { visits: [], renewals: [], letIns: [], leaves: [] };
  const own = { room: room.name, lineId, lostAfterSeconds: 3_600, spanMax: 8_000_000 };
  for (let left = waitingCount; left > 0; left -= roomVisitsMax) {
    const joinCount = Math.min(left, roomVisitsMax);
    await store.turn({ ...own, ...empty, joinCount }, systemClock.monotonicMs() + 20_000);
  }
}

/** Visitors in the line whose tickets are signed ahead: none asks twice in one row. */
const ticketCount = 250_000;

/** Characters of a ticket of each kind. */
const lengths = { waiting: 56, session: 48 } as const;

function signAll(line: StoreRoomLine): Path["cookies"] {
  const lineId = line.head?.lineId ?? 0;
  const second = Math.floor(line.second() ?? 0);
  const range = { lowSeconds: 600, middleSeconds: 700, highSeconds: 800, rangeFactor: 1 };
  const all = (count: number, ticketOf: (i: number) => Ticket): Buffer => {
    const scope = { room: room.name, address: undefined };
    return Buffer.concat(
      Array.from({ length: count }, (_, i) => Buffer.from(encodeTicket(ticketOf(i), scope, key))),
    );
  };
  const own = { lineId, second };
  return {
    waiting: all(ticketCount, (i) => {
      // Far behind those who are called.
      return { kind: "waiting", ...own, number: 2 * sessionCount + 3 * i, announced: range };
    }),
    session: all(sessionCount, (i) => ({ kind: "session", ...own, number: i, session: i })),
  };
}

/** Bytes of a request, and where its cookie is. */
interface CookieRequest {
  readonly bytes: Buffer;
  readonly at: number;
}

/** A navigation of a browser, about 700 bytes. */
function requestOf(cookieLength: number, path: string): CookieRequest {
  const mark = "#".repeat(cookieLength);
  const fields: readonly (readonly [key: string, value: string])[] = [
    [":authority", "orders.example"],
    [":path", path],
    [":method", "GET"],
    [":scheme", "https"],
    ["user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"],
    ["accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
    ["accept-language", "en-US,en;q=0.5"],
    ["accept-encoding", "gzip, deflate, br, zstd"],
    ["sec-fetch-mode", "navigate"],
    ["sec-fetch-site", "none"],
    ["x-forwarded-for", "203.0.113.7"],
    ["x-request-id", "5f0c54f9-7a1e-4c0f-9f57-000000000000"],
    ["cookie", `theme=dark; ${cookieLength > 0 ? `headgate-sale=${mark}; ` : ""}seen=1`],
  ];
  const headers = fields.map(([name, value]) => ({ key: name, rawValue: Buffer.from(value) }));
  const request = create(ProcessingRequestSchema, {
    request: { case: "requestHeaders", value: { headers: { headers }, endOfStream: true } },
    attributes: { "envoy.filters.http.ext_proc": { "xds.route_name": "orders" } },
    protocolConfig: {},
  });
  const bytes = Buffer.from(toBinary(ProcessingRequestSchema, request));
  return { bytes, at: cookieLength > 0 ? bytes.indexOf(mark) : 0 };
}

const requests = {
  refreshRequest: requestOf(lengths.waiting, "/checkout"),
  positionRequest: requestOf(lengths.waiting, `${room.endpointPath}/position?page`),
  joinRequest: requestOf(0, "/checkout").bytes,
  sessionRequest: requestOf(lengths.session, "/checkout"),
  plainRequest: requestOf(lengths.session, "/checkout").bytes,
};

function visit(path: Path, size: number, request: CookieRequest): Promise<Buffer> {
  return ask(path.open, size, () => {
    path.nextVisit = (path.nextVisit + 1) % ticketCount;
    return withCookie(request, path.cookies.waiting, path.nextVisit * lengths.waiting);
  });
}

function inside(path: Path, size: number, request: CookieRequest): Promise<Buffer> {
  return ask(path.open, size, () => {
    path.nextVisit += 1;
    const session = (path.nextVisit * 7_919) % sessionCount;
    return withCookie(request, path.cookies.session, session * lengths.session);
  });
}

/** Bytes hold until a reader has returned, so one message serves all. */
function withCookie({ bytes, at }: CookieRequest, cookies: Buffer, from: number): Buffer {
  const length = bytes.indexOf(";", at) - at;
  cookies.copy(bytes, at, from, from + length);
  return bytes;
}

/** Opens so many exchanges in one turn. @returns the last answer */
function ask(open: BidiHandler, size: number, next: () => Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let left = size;
    const readers: BidiReader[] = [];
    const answered = (bytes: Uint8Array): boolean => {
      left -= 1;
      if (left > 0) return true;
      queueMicrotask(() => {
        for (const reader of readers) reader.onEnd();
        resolve(Buffer.from(bytes));
      });
      return true;
    };
    for (let i = 0; i < size; i += 1) {
      const reader = open(context, {
        send: answered,
        next: () => {},
        end: () => {},
        fail: reject,
      });
      readers.push(reader);
      reader.onMessage(next());
    }
  });
}

const context = {
  deadlineMs: Number.POSITIVE_INFINITY,
  metadata: (name: string) => (name === "x-headgate-service" ? "orders" : undefined),
  peer: unknownPeer,
};

const decisions = new Requests(1);

function decide(path: Path, size: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = size;
    const reply = (): void => {
      left -= 1;
      if (left === 0) resolve();
    };
    const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };
    for (let i = 0; i < size; i += 1) {
      path.nextVisit += 1;
      const bytes = decisions.write(i, (path.nextVisit * 7_919) % keyCount);
      path.decide(bytes, call, { reply, fail: reject });
    }
  });
}

async function pageOf(path: Path): Promise<Buffer> {
  const { response } = fromBinary(
    ProcessingResponseSchema,
    await visit(path, 1, requests.refreshRequest),
  );
  if (response.case !== "immediateResponse") throw new Error("the visitor does not wait");
  return Buffer.from(response.value.body);
}

function exchanges(admission: AdmissionDecider): BidiHandler {
  const codec = new ExtProcCodec(admission);
  const counts = new ExchangeCounts();
  const { methods } = createExternalProcessorService({ admission, codec, counts });
  const [method] = methods;
  if (method?.kind !== "bidi") throw new Error("ext_proc is a stream");
  return method.open;
}

function roomAdmission(policy: ReturnType<typeof roomsPolicy>, line: StoreRoomLine): RoomAdmission {
  const policies = { current: () => policy };
  const decider = createTestDecider({
    ...{ clock: systemClock, policies, counters: new DecisionCounters() },
  });
  const inner = new Admission({
    ...{ policies, clock: systemClock, random: systemRandom, decider, shares: undefined },
    digest: (text) => text,
    permitLeaseMsMax: 300_000,
    isOverloaded: () => false,
    onEvent: () => {},
  });
  const keys = [key];
  return new RoomAdmission({
    ...{ policies, inner, decider },
    access: () => ({ line, keys: () => keys }),
    draw: () => systemRandom.next(),
    nowMs: () => systemClock.epochUs() / 1_000,
    hash: (text) => createHash("sha256").update(text).digest("base64"),
  });
}
