import { createHealthService, Health } from "../../src/rpc/grpc/health.js";
import { GrpcFailure, toCallFailure } from "../../src/rpc/grpc/status.js";
import { greetingMsMax, headerBlockMsMax } from "../../src/wire/base/http2-limits.js";
import { NativeServer } from "../../src/wire/grpc/native-server.js";
import type { BidiAnswers, ServiceHandlers, UnaryAnswer } from "../../src/wire/grpc/service.js";
import { Dice } from "../simulation/dice.js";
import { framesOf, mutatedExchange } from "./exchange-mutations.js";
import { FakeClock, settlePromises } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";
import { data, frame, Http2Peer, preface, request, requestFields } from "./http2-peer.js";
import { framed } from "./recorded-stream.js";
import type { FuzzRun } from "./wire-fuzz.js";

/** What a server with a broken client keeps, at most: so many times what came, and a constant. */
const keptPerByteMax = 40;
const keptBytesMax = 65_536;

/** Inputs that see the same server and the same neighbour. */
const inputsOfServerMax = 200;

/** Shuts the windows of most clients in a few answers. */
const largeAnswerBytes = 30_000;

/** A failure in words, as the first one ends an input. */
type Failure = string | undefined;

/**
 * Feeds whole connections to a server of the native transport: exchanges of real clients that were
 * changed, cut anywhere, with a socket that is full, with time that passes and work that ends late.
 * Whatever comes, nothing throws, no handler is left without its end, what is kept is bounded, the
 * connection ends or goes on answering, and a neighbour on the same server notices nothing.
 *
 * @returns what is wrong with the first input that fails; undefined when none does
 */
export async function fuzzConnections(run: FuzzRun): Promise<Failure> {
  const dice = new Dice(new FakeRandom(run.seed));
  let server = new FuzzedServer(dice);
  const calm = new FuzzedServer();
  for (let done = 0; done < run.count; done += 1) {
    if (done % inputsOfServerMax === 0) server = new FuzzedServer(dice);
    const failure = dice.chance(0.8)
      ? await new FuzzedClient(dice, server).run()
      : await compareCuts(dice, calm);
    if (failure !== undefined) return `seed ${run.seed}, connection ${done}: ${failure}`;
    if (done % 1_000 === 999) run.onProgress?.(done + 1);
  }
  return undefined;
}

/**
 * Feeds the same frames whole, and cut anywhere: the server says the same. Then all at once, which
 * need not be the same: what waits for a window leaves when a read has ended.
 */
async function compareCuts(dice: Dice, calm: FuzzedServer): Promise<Failure> {
  const bytes = mutatedExchange(dice);
  const frames = [bytes.subarray(0, preface.length), ...framesOf(bytes.subarray(preface.length))];
  const whole = await converse(calm, frames);
  const cut = await converse(calm, frames, (one) => pieces(dice, one));
  await converse(calm, [bytes]);
  const story = `\n${bytes.toString("hex")}`;
  if (calm.bugs.length > 0) return `bugs: ${calm.bugs.join()}${story}`;
  if (calm.openCount > 0) return `${calm.openCount} calls were never ended${story}`;
  const [one, other] = [whole, cut].map(({ lines, end }) => [...lines, end].join("; "));
  return one === other ? undefined : `says ${one}, and when cut ${other}${story}`;
}

/** What a server said, and how the connection ended. */
export interface Conversation {
  readonly lines: readonly string[];
  /** `destroyed` where it went on until we ended it. */
  readonly end: string;
}

/** What a server whose handlers answer at once says to chunks as they come. */
export function answersTo(chunks: readonly Buffer[]): Promise<Conversation> {
  return converse(new FuzzedServer(), chunks);
}

/**
 * Cuts a connection after each byte of an exchange, on one server that then serves the whole.
 *
 * @returns what is wrong after the first cut that harms the server; undefined when none does
 */
export async function cutAtEveryByte(bytes: Buffer): Promise<Failure> {
  const calm = new FuzzedServer();
  for (let end = 0; end <= bytes.length; end += 1) {
    await converse(calm, [bytes.subarray(0, end)]);
    if (calm.bugs.length > 0) return `bugs after ${end} bytes: ${calm.bugs.join()}`;
    if (calm.openCount > 0) return `${calm.openCount} calls go on after ${end} bytes`;
  }
  const [fresh, used] = [await answersTo([bytes]), await converse(calm, [bytes])];
  return used.lines.join() === fresh.lines.join() ? undefined : "it serves the whole otherwise";
}

/** What a calm server answers to frames that each come in some pieces. */
async function converse(
  calm: FuzzedServer,
  frames: readonly Buffer[],
  cut: (frame: Buffer) => readonly Buffer[] = (frame) => [frame],
): Promise<Conversation> {
  const peer = new Http2Peer({ acceptor: calm.native.openConnection() });
  const lines: string[] = [];
  for (const bytes of frames) {
    for (const piece of cut(bytes)) if (!peer.socket.isDestroyed) peer.send(Buffer.from(piece));
    lines.push(...peer.takeLines());
  }
  await settlePromises();
  lines.push(...peer.takeLines());
  peer.connection.destroy();
  const [end] = peer.ends;
  return { lines, end: end?.kind === "error" ? `error ${end.code}` : (end?.kind ?? "nothing") };
}

function pieces(dice: Dice, bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + dice.below(dice.pick([3, 30, 300])));
    parts.push(bytes.subarray(at, end));
    at = end;
  }
  return parts;
}

/**
 * A server of the native transport and a neighbour on it. With dice its handlers answer when they
 * like; without they answer at once, and always the same.
 */
class FuzzedServer {
  readonly clock = new FakeClock();
  readonly bugs: unknown[] = [];
  readonly native: NativeServer;
  /** Work that has begun and waits. */
  #pending: (() => void)[] = [];
  /** Calls that a handler was given and has not ended. */
  openCount = 0;
  readonly #dice: Dice | undefined;
  readonly #neighbour: Http2Peer;
  #neighbourCalls = 0;

  constructor(dice?: Dice) {
    this.#dice = dice;
    const health = new Health();
    health.serve();
    this.native = new NativeServer({
      services: [createHealthService(health), ...this.#services()],
      clock: this.clock,
      onBug: (thrown) => this.bugs.push(thrown),
      isLate: () => this.#chance(0.1),
      onDropped: () => {},
      toFailure: toCallFailure,
    });
    this.#neighbour = Http2Peer.greeted({ acceptor: this.native.openConnection() });
  }

  /** Ends some work, or all. */
  settle(count = Number.POSITIVE_INFINITY): void {
    this.clock.runTurns();
    for (let left = count; left > 0; left -= 1) {
      const work = this.#pending.shift();
      if (work === undefined) return;
      work();
    }
  }

  /** One call of the neighbour's; answers whether it was answered, and nothing else. */
  isNeighbourServed(): boolean {
    const id = 1 + 2 * this.#neighbourCalls;
    this.#neighbourCalls += 1;
    const fields = requestFields.map(([name, value]) => [
      name,
      name === ":path" ? "/test.Neighbour/Ask" : value,
    ]) as typeof requestFields;
    this.#neighbour.send(request(id, 0x4, fields), data(id, framed("hello"), 1));
    this.clock.runTurns();
    const [head, body, end, ...more] = this.#neighbour.takeLines();
    return (
      more.length === 0 &&
      head?.startsWith(`${id} HEADERS :status=200`) === true &&
      body === `${id} DATA 10` &&
      end === `${id} HEADERS grpc-status=0, end`
    );
  }

  /** Now or later. */
  #do(work: () => void): void {
    if (this.#chance(0.4)) this.#pending.push(work);
    else work();
  }

  #chance(ratio: number): boolean {
    return this.#dice?.chance(ratio) ?? false;
  }

  #services(): readonly ServiceHandlers[] {
    return [
      {
        name: "envoy.service.ratelimit.v3.RateLimitService",
        methods: [
          {
            kind: "unary",
            name: "ShouldRateLimit",
            handle: (bytes, _call, answer) => this.#answer(Buffer.from(bytes), answer),
          },
        ],
      },
      {
        name: "envoy.service.ext_proc.v3.ExternalProcessor",
        methods: [{ kind: "bidi", name: "Process", open: (_call, to) => this.#exchange(to) }],
      },
      {
        name: "headgate.Test",
        methods: [
          {
            kind: "unary",
            name: "Echo",
            handle: (bytes, _call, answer) => this.#answer(Buffer.from(bytes), answer),
          },
        ],
      },
      {
        name: "test.Neighbour",
        methods: [
          {
            kind: "unary",
            name: "Ask",
            handle: (bytes, _call, answer) => answer.reply(Buffer.from(bytes)),
          },
        ],
      },
    ];
  }

  #answer(bytes: Buffer, answer: UnaryAnswer): void {
    this.openCount += 1;
    this.#do(() => {
      this.openCount -= 1;
      if (this.#chance(0.1)) answer.fail(new GrpcFailure(3, "no"));
      else answer.reply(bytes);
    });
  }

  #exchange(answers: BidiAnswers) {
    this.openCount += 1;
    let isOver = false;
    let isFull = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      this.openCount -= 1;
      answers.end();
    };
    const next = (): void => {
      if (!isOver && !isFull) answers.next();
    };
    return {
      onMessage: (bytes: Uint8Array) => {
        const answer = this.#chance(0.1) ? Buffer.alloc(largeAnswerBytes) : Buffer.from(bytes);
        this.#do(() => {
          if (isOver) return;
          isFull = !answers.send(answer);
          next();
        });
      },
      onEnd: () => this.#do(end),
      onCancel: () => this.#do(end),
      onDrain: () => {
        isFull = false;
        next();
      },
    };
  }
}

/** One connection, from its first byte to its end. */
class FuzzedClient {
  /** What happened, for who looks into a failure. */
  readonly #story: string[] = [];
  readonly #dice: Dice;
  readonly #server: FuzzedServer;
  readonly #peer: Http2Peer;
  #sentBytes = 0;

  constructor(dice: Dice, server: FuzzedServer) {
    this.#dice = dice;
    this.#server = server;
    this.#peer = new Http2Peer({
      acceptor: server.native.openConnection(),
      seed: dice.below(1_000),
    });
  }

  async run(): Promise<Failure> {
    let failure: Failure;
    try {
      failure = this.#talk() ?? this.#checkAlive() ?? (await this.#checkEnd());
    } catch (thrown) {
      failure = `throws ${String(thrown)}`;
    }
    return failure === undefined ? undefined : [failure, ...this.#story].join("\n");
  }

  get #isGone(): boolean {
    return this.#peer.socket.isDestroyed;
  }

  #talk(): Failure {
    const bytes = mutatedExchange(this.#dice);
    const size = this.#dice.pick([1, 20, 200, 10_000, 10_000]);
    for (let at = 0; at < bytes.length && !this.#isGone; ) {
      const end = Math.min(bytes.length, at + 1 + this.#dice.below(size));
      if (!this.#feed(bytes.subarray(at, end))) this.#drain();
      else at = end;
      if (this.#dice.chance(0.2)) this.#happen();
      const failure = this.#checkKept();
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Answers false where the server does not read. */
  #feed(bytes: Buffer): boolean {
    const { socket } = this.#peer;
    if (socket.isPaused) return false;
    this.#story.push(bytes.toString("hex"));
    this.#sentBytes += bytes.length;
    // A chunk of its own, which nobody may look at later.
    const chunk = Buffer.from(bytes);
    socket.feed(chunk);
    chunk.fill(0xee);
    if (this.#dice.chance(0.8)) this.#peer.runFlushes();
    return true;
  }

  /** Something that is not the client's doing, or not its bytes. */
  #happen(): void {
    const { socket, clock, connection } = this.#peer;
    const event = this.#dice.below(12);
    this.#story.push(`event ${event}`);
    if (event < 4) this.#server.settle(1 + this.#dice.below(3));
    else if (event < 6) socket.isFull = true;
    else if (event < 9) this.#drain();
    else if (event === 9) clock.advance(this.#dice.pick([1, 500, 11_000, 61_000]));
    else if (event === 10) connection.leave(() => {});
    else if (this.#dice.chance(0.3) && !this.#isGone) socket.emit("end");
  }

  #drain(): void {
    const { socket } = this.#peer;
    socket.isFull = false;
    if (!this.#isGone) socket.emit("drain");
    this.#peer.runFlushes();
  }

  #checkKept(): Failure {
    const { keptBytes } = this.#peer.connection;
    const bound = keptBytesMax + keptPerByteMax * this.#sentBytes;
    return keptBytes > bound ? `keeps ${keptBytes} bytes of ${this.#sentBytes}` : undefined;
  }

  /** It has ended, or it is still an HTTP/2 server. */
  #checkAlive(): Failure {
    const peer = this.#peer;
    this.#server.settle();
    this.#drain();
    this.#server.settle();
    peer.runFlushes();
    const { socket, connection, clock } = peer;
    // What the server has sent is well-formed, header blocks included.
    peer.takeLines();
    if (this.#isGone || socket.isEnded) {
      return connection.streamCount === 0 ? undefined : "has streams behind its last word";
    }
    if (connection.isInside || !connection.isGreeted) {
      clock.advance(Math.max(greetingMsMax, headerBlockMsMax));
      return this.#isGone ? undefined : "waits for the rest of a frame for ever";
    }
    // In another second, so that no rate is passed by this.
    clock.advance(1_000);
    if (this.#isGone || socket.isEnded) return undefined;
    peer.takeLines();
    peer.send(frame({ type: 6, payload: Buffer.from("headgate") }));
    const isAnswered = peer
      .takeLines()
      .includes(`PING ${Buffer.from("headgate").toString("hex")} ack`);
    if (!isAnswered) return "does not answer any more";
    const hasRest = connection.streamCount === 0 && connection.keptBytes !== 0;
    return hasRest ? "keeps bytes of streams that are gone" : undefined;
  }

  /** Nothing is left of it when it is gone. */
  async #checkEnd(): Promise<Failure> {
    const { connection, ends, bugs, clock } = this.#peer;
    const server = this.#server;
    connection.destroy();
    server.settle();
    await settlePromises();
    if (ends.length !== 1) return `told its end ${ends.length} times`;
    if (connection.streamCount !== 0) return "has streams behind its end";
    if (connection.lingeringCount !== 0) return "counts streams that nobody works for";
    if (connection.keptBytes > keptBytesMax) return "keeps bytes behind its end";
    if (clock.timerCount !== 0) return "has a timer behind its end";
    if (server.openCount !== 0) return `${server.openCount} calls were never ended`;
    if (bugs.length + server.bugs.length > 0) return `bugs: ${[...bugs, ...server.bugs].join()}`;
    return server.isNeighbourServed() ? undefined : "a neighbour was not answered";
  }
}
