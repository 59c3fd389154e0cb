import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import { partialMsMax, peerPartialBytesMax } from "../../../../src/wire/grpc/partial-bytes.js";
import { type MethodHandler, messageBytesMax } from "../../../../src/wire/grpc/service.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { framed } from "../../../support/recorded-stream.js";
import {
  askPath,
  echo,
  grpcStatusOf,
  type RawConnection,
  sendRaw,
  useTransports,
} from "../../../support/transports.js";
import { unaryHandler } from "../../../support/unary.js";

const transports = useTransports();

const half = framed(Buffer.alloc(messageBytesMax)).subarray(0, messageBytesMax / 2);
const halvesMax = peerPartialBytesMax / half.length;

const answered: MethodHandler = {
  kind: "unary",
  name: "Ask",
  handle: unaryHandler(async (bytes) => Buffer.from(bytes)),
  onTooLarge: (answer) => answer.reply(Buffer.from("over")),
};

/** Answers each message with itself. */
const talk: MethodHandler = {
  kind: "bidi",
  name: "Ask",
  open: (_, answers) => ({
    onMessage: (bytes) => {
      answers.send(Buffer.from(bytes));
      answers.next();
    },
    onEnd: () => answers.end(),
    onCancel: () => answers.end(),
    onDrain: () => {},
  }),
};

async function open(method: MethodHandler) {
  const clock = new FakeClock();
  const running = await transports.start("grpc-js", method, { clock });
  return { clock, raw: await transports.openRaw(running) };
}

/** Begins a request; resolves when the server has read the part. */
async function begin({ session }: RawConnection, part: Buffer) {
  const stream = session.request({
    ":method": "POST",
    ":path": askPath,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  const body: Buffer[] = [];
  stream.on("data", (bytes: Buffer) => body.push(bytes));
  const status = new Promise<number>((resolve) => {
    const take = (fields: Record<string, unknown>): void => {
      if (fields["grpc-status"] !== undefined) resolve(Number(fields["grpc-status"]));
    };
    stream.on("response", take);
    stream.on("trailers", take);
  });
  await new Promise<void>((resolve) => stream.write(part, () => resolve()));
  await ping(session);
  return { stream, status, text: () => Buffer.concat(body).subarray(5).toString() };
}

/** Frames arrive in order. */
function ping(session: RawConnection["session"]): Promise<void> {
  return new Promise((resolve) => session.ping(() => resolve()));
}

describe("unfinished requests on grpc-js", () => {
  it.each([
    ["half of one", half],
    ["one that is whole but for its end", framed("a")],
  ])("have ten seconds: %s", async (_, part) => {
    const { clock, raw } = await open(echo);
    const { status } = await begin(raw, part);
    clock.advance(partialMsMax);
    expect(await status).toBe(4);
  });

  it(`are ${peerPartialBytesMax} bytes of a peer at most, and give their place back`, async () => {
    const { raw } = await open(echo);
    const calls = [];
    for (let i = 0; i < halvesMax; i += 1) calls.push(await begin(raw, half));
    expect(await (await begin(raw, half)).status).toBe(8);
    // One that is gone leaves its room to another.
    calls[0]?.stream.close(constants.NGHTTP2_CANCEL);
    await ping(raw.session);
    const message = framed(Buffer.alloc(messageBytesMax / 2 - 5));
    expect(grpcStatusOf(await sendRaw(raw.session, [message]))).toBe(0);
  });

  it("are answered by a method that has words for what is too large", async () => {
    const { raw } = await open(answered);
    for (let i = 0; i < halvesMax; i += 1) await begin(raw, half);
    const { status, text } = await begin(raw, half);
    expect(await status).toBe(0);
    expect(text()).toBe("over");
  });

  it("are answered by it also where a message is larger than is taken, however large", async () => {
    const { raw } = await open(answered);
    const large = framed(Buffer.alloc(5 * messageBytesMax));
    for (const part of [framed(Buffer.alloc(messageBytesMax + 1)), large]) {
      const { status, text } = await begin(raw, part);
      expect([await status, text()]).toEqual([0, "over"]);
    }
  });

  it("are answered by the handler of a call with many", async () => {
    const { raw } = await open({
      kind: "bidi",
      name: "Ask",
      open: (_, answers) => ({
        onMessage: () => {},
        onEnd: () => {},
        onCancel: () => answers.end(),
        onDrain: () => {},
        onTooLarge: () => {
          answers.send(Buffer.from("over"));
          answers.end();
        },
      }),
    });
    for (let i = 0; i < halvesMax; i += 1) await begin(raw, half);
    const { status, text } = await begin(raw, half);
    expect([await status, text()]).toEqual([0, "over"]);
  });

  it("have their time anew with each message of a call with many", async () => {
    const { clock, raw } = await open(talk);
    const cut = framed("abc");
    const { stream, status, text } = await begin(raw, Buffer.concat([cut, cut.subarray(0, 3)]));
    clock.advance(partialMsMax - 1);
    stream.write(cut.subarray(3));
    const other = await begin(raw, cut);
    clock.advance(partialMsMax);
    expect(text().slice(0, 3)).toBe("abc");
    stream.end();
    other.stream.end();
    expect(await Promise.all([status, other.status])).toEqual([0, 0]);
    const slow = await begin(raw, cut.subarray(0, 3));
    clock.advance(partialMsMax);
    expect(await slow.status).toBe(4);
  });
});
