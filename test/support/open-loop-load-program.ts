import { connect, type Socket } from "node:net";
import { FakeRandom } from "./fake-random.js";
import type { LoadAnswer, LoadClass, OpenLoopOrder } from "./open-loop-load.js";

/**
 * A program of its own: requests at the times of a Poisson process, however the answers fare, over
 * connections that are kept. Latency counts from the time that a request was due, so that a load
 * that comes late is not taken for a server that is fast. Sockets by hand, because a library's
 * client costs more than the proxy that it measures. Started with its order as JSON; prints what
 * became of each request as JSON once all is over.
 */
const order: OpenLoopOrder = JSON.parse(process.argv[2] ?? "{}");
const random = new FakeRandom(order.seed);
const classRandom = order.classSeed === undefined ? random : new FakeRandom(order.classSeed);
const retryRandom = new FakeRandom(order.seed + 1);
const answers: LoadAnswer[] = [];
const idle: Connection[][] = order.ports.map(() => []);
const startMs = performance.now();
let openCount = 0;
let dueMs = nextGapMs();
let sentCount = 0;
let isOver = false;

type Answer = Pick<LoadAnswer, "status" | "retryAfter" | "hasWaited" | "workMs">;

const noAnswer: Answer = { status: 0, retryAfter: false, hasWaited: false, workMs: 0 };

/** A connection with at most one request on it. */
class Connection {
  readonly #socket: Socket;
  readonly #pool: Connection[];
  #settle: ((answer: Answer) => void) | undefined;
  #text = "";

  constructor(place: number) {
    this.#pool = idle[place] ?? [];
    this.#socket = connect({ host: "127.0.0.1", port: order.ports[place] ?? 0, noDelay: true });
    this.#socket.setEncoding("latin1");
    this.#socket.on("data", (text: string) => this.#read(text));
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      const place = this.#pool.indexOf(this);
      if (place >= 0) this.#pool.splice(place, 1);
      this.#done(noAnswer);
    });
  }

  send(head: string, settle: (answer: Answer) => void): void {
    this.#settle = settle;
    this.#socket.write(head);
  }

  close(): void {
    this.#settle = undefined;
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#text += text;
    const headEnd = this.#text.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#text.slice(0, headEnd).toLowerCase();
    const length = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? Number.NaN);
    const isChunked = head.includes("\r\ntransfer-encoding: chunked");
    const isWhole = isChunked
      ? this.#text.endsWith("0\r\n\r\n")
      : this.#text.length >= headEnd + 4 + (Number.isNaN(length) ? 0 : length);
    if (!isWhole) return;
    this.#text = "";
    if (head.includes("\r\nconnection: close")) this.#socket.destroy();
    else this.#pool.push(this);
    const reason = /\r\nx-headgate-reason: ([^\r]*)/.exec(head)?.[1] ?? "";
    this.#done({
      status: Number(head.slice(9, 12)),
      retryAfter: head.includes("\r\nretry-after: "),
      hasWaited: reason.includes("waited in its queue for too long"),
      workMs: Number(/\r\nx-work-ms: ([0-9.e-]+)/.exec(head)?.[1] ?? 0),
    });
  }

  #done(answer: Answer): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(answer);
  }
}

function sendDue(): void {
  // Timers are as coarse as a millisecond: all that is due by now leaves now.
  const untilMs = nowMs();
  while (dueMs <= untilMs && dueMs < order.durationMs) {
    begin(dueMs, pickClass());
    dueMs += nextGapMs();
  }
  if (dueMs < order.durationMs) {
    setTimeout(sendDue, Math.max(0, dueMs - nowMs()));
    return;
  }
  isOver = true;
  finishWhenIdle();
}

function nextGapMs(): number {
  return (-Math.log(1 - random.next()) / order.perSecond) * 1_000;
}

function pickClass(): LoadClass {
  let left = classRandom.next();
  for (const one of order.classes) {
    left -= one.share;
    if (left < 0) return one;
  }
  return order.classes[order.classes.length - 1] ?? { name: "all", share: 1, headers: {} };
}

function begin(atMs: number, { name, headers }: LoadClass): void {
  openCount += 1;
  sentCount += 1;
  const id = sentCount;
  const lateMs = nowMs() - atMs;
  const { attempts = 1, backoffMs = 0 } = order.retries ?? {};
  const attempt = (dueMs: number, attemptCount: number): void => {
    send({ dueMs, id, headers }, (answer) => {
      const isFailed = answer.status === 0 || answer.status >= 400;
      if (isFailed && attemptCount < attempts) {
        const waitMs = retryRandom.next() * backoffMs * 2 ** (attemptCount - 1);
        setTimeout(() => attempt(nowMs(), attemptCount + 1), waitMs);
        return;
      }
      answers.push({ name, atMs, lateMs, latencyMs: nowMs() - atMs, attemptCount, ...answer });
      openCount -= 1;
      finishWhenIdle();
    });
  };
  attempt(atMs, 1);
}

interface Attempt {
  readonly dueMs: number;
  readonly id: number;
  readonly headers: Readonly<Record<string, string>>;
}

function send({ dueMs, id, headers }: Attempt, settle: (answer: Answer) => void): void {
  const place = id % order.ports.length;
  const connection = idle[place]?.pop() ?? new Connection(place);
  const timer = setTimeout(
    () => {
      connection.close();
      settle(noAnswer);
    },
    Math.max(0, dueMs + order.deadlineMs - nowMs()),
  );
  const fields = Object.entries({
    host: "load",
    ...headers,
    "x-load-request": `${order.seed}-${id}`,
    // Callers are many: without names they would be one.
    "x-caller": `caller-${id % order.callerCount}`,
  });
  const lines = fields.map(([field, value]) => `${field}: ${value}\r\n`).join("");
  connection.send(`GET / HTTP/1.1\r\n${lines}\r\n`, (answer) => {
    clearTimeout(timer);
    settle(answer);
  });
}

function nowMs(): number {
  return performance.now() - startMs;
}

function finishWhenIdle(): void {
  if (!isOver || openCount > 0) return;
  for (const connection of idle.flat()) connection.close();
  process.stdout.write(JSON.stringify(answers));
}

sendDue();
