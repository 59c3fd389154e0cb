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
const answers: LoadAnswer[] = [];
const idle: Connection[][] = order.ports.map(() => []);
const startMs = performance.now();
let openCount = 0;
let dueMs = 0;
let sentCount = 0;
let isOver = false;

type Answer = Pick<LoadAnswer, "status" | "retryAfter" | "hasWaited">;

const noAnswer: Answer = { status: 0, retryAfter: false, hasWaited: false };

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
  const nowMs = performance.now() - startMs;
  while (dueMs <= nowMs && dueMs < order.durationMs) {
    send(dueMs, pickClass());
    dueMs += (-Math.log(1 - random.next()) / order.perSecond) * 1_000;
  }
  if (dueMs < order.durationMs) {
    setTimeout(sendDue, Math.max(0, dueMs - (performance.now() - startMs)));
    return;
  }
  isOver = true;
  finishWhenIdle();
}

function pickClass(): LoadClass {
  let left = random.next();
  for (const one of order.classes) {
    left -= one.share;
    if (left < 0) return one;
  }
  return order.classes[order.classes.length - 1] ?? { name: "all", share: 1, headers: {} };
}

function send(atMs: number, { name, headers }: LoadClass): void {
  openCount += 1;
  sentCount += 1;
  const lateMs = performance.now() - startMs - atMs;
  const place = sentCount % order.ports.length;
  const connection = idle[place]?.pop() ?? new Connection(place);
  const settle = (answer: Answer): void => {
    clearTimeout(timer);
    const latencyMs = performance.now() - startMs - atMs;
    answers.push({ name, atMs, lateMs, latencyMs, ...answer });
    openCount -= 1;
    finishWhenIdle();
  };
  const timer = setTimeout(
    () => {
      connection.close();
      settle(noAnswer);
    },
    Math.max(0, atMs + order.deadlineMs - (performance.now() - startMs)),
  );
  const fields = Object.entries({
    host: "load",
    ...headers,
    "x-load-request": `${order.seed}-${sentCount}`,
    // Callers are many: without names they would be one.
    "x-caller": `caller-${sentCount % order.callerCount}`,
  });
  const lines = fields.map(([field, value]) => `${field}: ${value}\r\n`).join("");
  connection.send(`GET / HTTP/1.1\r\n${lines}\r\n`, settle);
}

function finishWhenIdle(): void {
  if (!isOver || openCount > 0) return;
  for (const connection of idle.flat()) connection.close();
  process.stdout.write(JSON.stringify(answers));
}

sendDue();
