import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import { partialMsMax } from "../../../../src/wire/grpc/partial-bytes.js";
import {
  type AnswersCommands,
  RespConnection,
  type RespReply,
  unreadRepliesMsMax,
  waitingCommandsMax,
} from "../../../../src/wire/resp/resp-connection.js";
import { commandBytesMax } from "../../../../src/wire/resp/resp-reader.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { encodeCommand } from "../../../support/resp-client.js";

/** Lets streams and promises of this process do all that they can. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const echo: AnswersCommands = ([first]) => ({ text: `+${first}\r\n` });

/** A connection, its client, and what has come back to it. */
class Rig {
  readonly clock = new FakeClock();
  readonly client: Duplex;
  readonly stream: Duplex;
  readonly connection: RespConnection;
  readonly bugs: unknown[] = [];
  received = "";
  isEnded = false;

  constructor(answer: AnswersCommands, { isReading = true } = {}) {
    const [stream, client] = duplexPair({ allowHalfOpen: true });
    this.client = client;
    this.stream = stream;
    this.connection = new RespConnection({
      stream,
      clock: this.clock,
      answer,
      scheduleFlush: (run) => process.nextTick(run),
      onBug: (thrown) => this.bugs.push(thrown),
      onEnd: () => {
        this.isEnded = true;
      },
    });
    if (isReading) this.read();
  }

  read(): void {
    this.client.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
    });
    this.client.on("end", () => this.client.end());
  }

  async send(bytes: Buffer | string): Promise<void> {
    this.client.write(bytes);
    await settled();
  }
}

describe("RespConnection", () => {
  it("answers in order, whichever reply is there first", async () => {
    const later: ((reply: RespReply) => void)[] = [];
    const rig = new Rig((parts) =>
      String(parts[0]) === "later" ? new Promise((resolve) => later.push(resolve)) : echo(parts),
    );
    const commands = ["a", "later", "b", "later", "c"].map((name) => encodeCommand(name));
    await rig.send(Buffer.concat(commands));
    expect(rig.received).toBe("+a\r\n");
    later[1]?.({ text: "+2\r\n" });
    await settled();
    expect(rig.received).toBe("+a\r\n");
    later[0]?.({ text: "+1\r\n" });
    await settled();
    expect(rig.received).toBe("+a\r\n+1\r\n+b\r\n+2\r\n+c\r\n");
  });

  it("answers commands that arrive a byte at a time, and leaves no timer behind", async () => {
    const rig = new Rig(echo);
    for (const byte of Buffer.concat([encodeCommand("a", "x"), encodeCommand("b")])) {
      await rig.send(Buffer.of(byte));
    }
    expect(rig.received).toBe("+a\r\n+b\r\n");
    expect(rig.clock.timerCount).toBe(0);
  });

  it("cuts a client whose command does not become whole in time", async () => {
    const rig = new Rig(echo);
    const whole = encodeCommand("a");
    await rig.send(Buffer.concat([whole, whole.subarray(0, 3)]));
    rig.clock.advance(partialMsMax / 2);
    // The time of a command begins with its first byte, not with each.
    await rig.send(whole.subarray(3, 4));
    rig.clock.advance(partialMsMax / 2);
    rig.clock.runTurns();
    await settled();
    expect([rig.received, rig.isEnded]).toEqual(["+a\r\n", true]);
  });

  it("tells a client that breaks the protocol, behind what came before, and ends", async () => {
    const rig = new Rig(echo);
    await rig.send(`${encodeCommand("a")}GET / HTTP/1.1\r\n${encodeCommand("b")}`);
    expect(rig.received).toBe("+a\r\n-ERR Protocol error: expected an array\r\n");
    expect(rig.isEnded).toBe(true);
  });

  it("reads no further while many commands wait for their replies", async () => {
    let askedCount = 0;
    const waiting: (() => void)[] = [];
    const rig = new Rig(() => {
      askedCount += 1;
      return new Promise((resolve) => waiting.push(() => resolve({ text: "+\r\n" })));
    });
    const count = 3 * waitingCommandsMax;
    await rig.send(Buffer.concat(Array.from({ length: count }, () => encodeCommand("a"))));
    expect(askedCount).toBe(waitingCommandsMax);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      next();
      if (waiting.length === 0) await settled();
    }
    expect([askedCount, rig.received.length]).toEqual([count, 3 * count]);
  });

  it("holds a bounded part of what a client does not read, and cuts it in time", async () => {
    let askedCount = 0;
    const line = `+${"x".repeat(1_000)}\r\n`;
    const count = (): RespReply => {
      askedCount += 1;
      return { text: line };
    };
    const rig = new Rig(count, { isReading: false });
    const asked = Buffer.concat(Array.from({ length: 10_000 }, () => encodeCommand("a")));
    await rig.send(asked);
    expect(askedCount).toBeLessThanOrEqual(2 * waitingCommandsMax);
    expect(rig.stream.isPaused()).toBe(true);
    rig.clock.advance(unreadRepliesMsMax);
    await settled();
    expect(rig.isEnded).toBe(true);
  });

  it("goes on when a client reads again", async () => {
    const rig = new Rig(() => ({ text: `+${"x".repeat(1_000)}\r\n` }), { isReading: false });
    const asked = Buffer.concat(Array.from({ length: 5_000 }, () => encodeCommand("a")));
    await rig.send(asked);
    rig.clock.advance(unreadRepliesMsMax / 2);
    rig.read();
    for (let turn = 0; turn < 200; turn += 1) await settled();
    expect([rig.received.length, rig.clock.timerCount]).toEqual([1_003 * 5_000, 0]);
  });

  it("keeps no more of a partial command than a command may have", async () => {
    const rig = new Rig(echo);
    await rig.send(`*1\r\n$${commandBytesMax - 100}\r\n`);
    await rig.send("a".repeat(10));
    await rig.send(`*2\r\n$${commandBytesMax}\r\n`);
    expect(rig.received).toBe("");
    const other = new Rig(echo);
    await other.send(`*2\r\n$${commandBytesMax}\r\n`);
    expect([other.received, other.isEnded]).toEqual([
      "-ERR Protocol error: a bulk string is too long\r\n",
      true,
    ]);
  });

  it("gives a client that has sent all its replies, and then ends", async () => {
    const later: ((reply: RespReply) => void)[] = [];
    const rig = new Rig(() => new Promise((resolve) => later.push(resolve)));
    rig.client.end(encodeCommand("a"));
    await settled();
    expect(rig.isEnded).toBe(false);
    later[0]?.({ text: "+late\r\n" });
    await settled();
    expect([rig.received, rig.isEnded]).toEqual(["+late\r\n", true]);
  });

  it("answers what was read when it leaves, and reads no more", async () => {
    const later: ((reply: RespReply) => void)[] = [];
    const rig = new Rig(() => new Promise((resolve) => later.push(resolve)));
    await rig.send(encodeCommand("a"));
    rig.connection.leave();
    await rig.send(encodeCommand("b"));
    expect([later.length, rig.isEnded]).toEqual([1, false]);
    later[0]?.({ text: "+a\r\n" });
    await settled();
    expect([rig.received, rig.isEnded]).toEqual(["+a\r\n", true]);
  });

  it("ends behind the last reply", async () => {
    const rig = new Rig(() => ({ text: "+OK\r\n", isLast: true }));
    await rig.send(Buffer.concat([encodeCommand("QUIT"), encodeCommand("a")]));
    expect([rig.received, rig.isEnded]).toEqual(["+OK\r\n", true]);
  });

  it("answers a bug with an error, reports it, and ends", async () => {
    const rig = new Rig(() => Promise.reject(new Error("a bug")));
    await rig.send(encodeCommand("a"));
    expect([rig.received, rig.isEnded]).toEqual(["-ERR internal error\r\n", true]);
    expect(rig.bugs).toHaveLength(1);
  });

  it("survives a client that goes while its reply is under way", async () => {
    const later: ((reply: RespReply) => void)[] = [];
    const rig = new Rig(() => new Promise((resolve) => later.push(resolve)));
    await rig.send(`${encodeCommand("a")}*1`);
    rig.stream.destroy(new Error("reset"));
    later[0]?.({ text: "+late\r\n" });
    await settled();
    expect([rig.isEnded, rig.bugs, rig.clock.timerCount]).toEqual([true, [], 0]);
  });
});
