import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  frameFlags,
  framePayloadBytesMax,
  frameTypes,
  settingIds,
} from "../../../../src/wire/base/frames.js";
import type { HeaderFields, SentField } from "../../../../src/wire/base/http2.js";
import { OutputBuffer } from "../../../../src/wire/base/output-buffer.js";
import {
  HpackDecoder,
  headerFieldsMax,
  headerListBytesMax,
} from "../../../../src/wire/hpack/hpack-decoder.js";
import { HpackEncoder } from "../../../../src/wire/hpack/hpack-encoder.js";
import { type Frame, FrameReader } from "../../../../src/wire/http2/frame-reader.js";
import { FrameWriter } from "../../../../src/wire/http2/frame-writer.js";
import { Dice } from "../../../simulation/dice.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { type PlainField, PlainHpackDecoder, RandomBlocks } from "../../../support/plain-hpack.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(1);

const bounds = {
  tableBytesMax: 4_096,
  listBytesMax: headerListBytesMax,
  fieldCountMax: headerFieldsMax,
};

function fieldsOf(fields: HeaderFields | undefined): readonly PlainField[] | undefined {
  if (fields === undefined) return undefined;
  return Array.from({ length: fields.count }, (_, i) => [fields.name(i), fields.value(i)] as const);
}

/** The server's end of a connection whose client is Node's own library. */
class LibraryClient {
  readonly session: ClientHttp2Session;
  readonly #socket: Duplex;
  readonly #writer = new FrameWriter(new OutputBuffer());
  readonly #decoder = new HpackDecoder(bounds);
  readonly #encoder = new HpackEncoder();
  readonly requests: (readonly PlainField[])[] = [];
  #onRequest: () => void = () => {};

  constructor(headerTableSize: number) {
    const [client, server] = duplexPair();
    this.#socket = server;
    this.session = connect("http://test", {
      createConnection: () => client,
      settings: { headerTableSize },
    });
    const reader = FrameReader.ofClient({ onFrame: (frame) => this.#onFrame(frame) });
    server.on("data", (chunk: Buffer) => reader.read(chunk));
    this.#writer.settings([]);
    this.#flush();
  }

  /** Announces how large the client's table may be. */
  announceTable(bytes: number): void {
    this.#writer.settings([[settingIds.headerTableSize, bytes]]);
    this.#flush();
  }

  /** Sends a request's head, and waits until it has been read. */
  async request(fields: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    const read = new Promise<void>((resolve) => {
      this.#onRequest = resolve;
    });
    const stream = this.session.request(fields, { endStream: true });
    await read;
    return stream;
  }

  /** Answers with a head and an end; answers what the client has read from them. */
  async answer(
    stream: ClientHttp2Stream,
    head: readonly SentField[],
    end: readonly SentField[],
  ): Promise<readonly IncomingHttpHeaders[]> {
    const heads: IncomingHttpHeaders[] = [];
    const answered = new Promise<void>((resolve, reject) => {
      stream.once("response", (fields) => heads.push(fields));
      stream.once("trailers", (fields) => {
        heads.push(fields);
        resolve();
      });
      stream.once("error", reject);
    });
    stream.resume();
    this.#sendHeaders(stream, head, 0);
    this.#sendHeaders(stream, end, frameFlags.endStream);
    this.#flush();
    await answered;
    return heads;
  }

  close(): void {
    this.session.destroy();
    this.#socket.destroy();
  }

  #sendHeaders(stream: ClientHttp2Stream, fields: readonly SentField[], flags: number): void {
    const id = stream.id ?? 0;
    this.#writer.begin(frameTypes.headers, flags, id);
    this.#encoder.encode(fields, this.#writer.output);
    this.#writer.endHeaders(id, framePayloadBytesMax);
  }

  #onFrame({ type, flags, bytes, start, end }: Frame): void {
    if (type === frameTypes.settings && (flags & frameFlags.ack) === 0) {
      for (let at = start; at < end; at += 6) {
        if (bytes.readUInt16BE(at) !== settingIds.headerTableSize) continue;
        this.#encoder.setPeerTableBytes(bytes.readUInt32BE(at + 2));
      }
      this.#writer.settingsAck();
      this.#flush();
    }
    if (type !== frameTypes.headers) return;
    const blockStart = (flags & frameFlags.priority) === 0 ? start : start + 5;
    this.requests.push(fieldsOf(this.#decoder.decode(bytes, blockStart, end)) ?? []);
    this.#onRequest();
  }

  #flush(): void {
    this.#socket.write(this.#writer.output.take());
  }
}

/** Text that a value may hold, of any byte above the controls. */
function randomValue(dice: Dice, bytesMax: number): string {
  const codes = Array.from({ length: dice.below(bytesMax) }, () => {
    const code = 0x21 + dice.below(0xdf);
    return code === 0x7f ? 0x20 : code;
  });
  return String.fromCharCode(...codes).trim();
}

/** Names of the static table that a request may hold, and some that it does not have. */
const requestNames: readonly string[] =
  `accept-charset accept-encoding accept-language accept-ranges accept
  access-control-allow-origin age allow authorization cache-control content-disposition
  content-encoding content-language content-location content-range content-type cookie date etag
  expect expires from if-match if-modified-since if-none-match if-range if-unmodified-since
  last-modified link location max-forwards proxy-authenticate proxy-authorization range referer
  refresh retry-after server set-cookie strict-transport-security user-agent vary via
  www-authenticate x-a x-bb traceparent grpc-timeout`
    .trim()
    .split(/\s+/);

describe(`HPACK, with Node's own HTTP/2 as the other end (seed ${seed}),`, () => {
  it("reads the heads of requests, through changes of the table's size", async () => {
    const dice = new Dice(new FakeRandom(seed));
    const client = new LibraryClient(4_096);
    try {
      for (let i = 0; i < seedCount(150); i += 1) {
        if (dice.chance(0.05)) client.announceTable(dice.pick([0, 60, 300, 4_096]));
        const fields: Record<string, string> = {};
        for (let left = dice.below(12); left > 0; left -= 1) {
          fields[dice.pick(requestNames)] = dice.chance(0.5) ? "again" : randomValue(dice, 80);
        }
        await client.request({ ":method": "POST", ":path": "/a.B/C", ...fields });
        const read = client.requests.at(-1)?.filter(([name]) => !name.startsWith(":"));
        // Node splits a cookie into crumbs, and leaves the order of names to itself.
        const expected = Object.entries(fields);
        expect([...(read ?? [])].sort()).toEqual(expected.sort());
        expect(client.requests.at(-1)).toContainEqual([":path", "/a.B/C"]);
      }
    } finally {
      client.close();
    }
  });

  it.each([4_096, 0, 50, 100_000])("writes answers for a table of %i bytes", async (tableBytes) => {
    const dice = new Dice(new FakeRandom(seed));
    const client = new LibraryClient(tableBytes);
    try {
      for (let i = 0; i < seedCount(50); i += 1) {
        if (dice.chance(0.1)) {
          client.session.settings({ headerTableSize: dice.pick([0, 60, 300, 4_096]) });
        }
        const stream = await client.request({ ":path": "/" });
        const head: SentField[] = [
          [":status", "200"],
          ["content-type", dice.pick(["application/grpc", "application/grpc+proto"])],
          ["x-random", randomValue(dice, 300)],
        ];
        const end: SentField[] = [
          ["grpc-status", String(dice.below(17))],
          ["grpc-message", randomValue(dice, 40)],
        ];
        const [first, last] = await client.answer(stream, head, end);
        expect(first).toMatchObject({
          ":status": 200,
          "content-type": head[1]?.[1],
          "x-random": head[2]?.[1],
        });
        expect(last).toMatchObject(Object.fromEntries(end));
      }
    } finally {
      client.close();
    }
  });
});

describe(`HPACK, with a plain decoder beside it (seed ${seed}),`, () => {
  it.each([4_096, 256, 40, 0])("reads random blocks, with a table of %i bytes", (tableBytesMax) => {
    const dice = new Dice(new FakeRandom(seed));
    const blocks = new RandomBlocks(dice, tableBytesMax);
    const small = { ...bounds, tableBytesMax, listBytesMax: 700 };
    const decoder = new HpackDecoder(small);
    const plain = new PlainHpackDecoder(small);
    let seen: Buffer = Buffer.alloc(0);
    for (let i = 0; i < seedCount(500); i += 1) {
      const { block, fields } = blocks.next();
      const expected = plain.decode(block);
      const read = fieldsOf(decoder.decode(block, 0, block.length));
      if (expected.kind === "fields") expect(expected.fields).toEqual(fields);
      expect(read).toEqual(expected.kind === "fields" ? fields : undefined);
      expect(decoder.tableBytes).toBe(plain.table.bytes);
      // A block of before may say something else by now, or nothing.
      if (dice.chance(0.5)) seen = block;
      const again = plain.clone().decode(seen);
      if (again.kind !== "fields" || plain.clone().changesTable(seen)) continue;
      expect(fieldsOf(decoder.decode(seen, 0, seen.length))).toEqual(again.fields);
      expect(fieldsOf(decoder.decode(seen, 0, seen.length))).toEqual(again.fields);
    }
  });
});
