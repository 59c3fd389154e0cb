import { Agent } from "node:http";
import type { Style } from "../app/base/style.js";
import type { Cancel, Clock } from "../core/base/clock.js";
import { send, type WireAnswer } from "./demo-traffic.js";

/** Number of visitors: ten shop, and a user who comes then waits for almost a minute. */
export const visitorsCount = 50;

/** Header of the shop's pages, by which visitors know that they have entered. */
export const shopHeader = "x-demo-shop";

/** The room's endpoints, as in envoy/waiting-room/policy.yaml. */
export const roomPositionPath = "/.waiting-room/shop/position";
const leavePath = "/.waiting-room/shop/leave";

/** Times that visitors spend in the shop, in milliseconds, in turn: eight seconds on average. */
const staysMs: readonly number[] = [6_000, 10_000, 5_000, 8_000, 11_000, 7_000, 9_000];

/** Time between the first visits of two visitors, in milliseconds. */
const comesEveryMs = 60;

/** Time until a visitor without a `retry-after` returns, in milliseconds. */
const againMs = 2_000;

/** Current and cumulative counts of visitors. */
export interface VisitorCounts {
  readonly waiting: number;
  readonly shopping: number;
  readonly entered: number;
  readonly failed: number;
}

interface VisitorsParts {
  readonly clock: Clock;
  /** Port of Envoy. */
  readonly port: number;
}

/** One browser. */
interface Visitor {
  cookie: string;
  isIn: boolean;
}

/** Visitors with browsers in front of a shop. When one leaves it, another one may enter. */
export class Visitors {
  readonly #parts: VisitorsParts;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #visitors: Visitor[] = [];
  readonly #cancels = new Map<Visitor, Cancel>();
  #enteredCount = 0;
  #failedCount = 0;
  #isStopped = false;

  constructor(parts: VisitorsParts) {
    this.#parts = parts;
  }

  get counts(): VisitorCounts {
    const shopping = this.#visitors.filter(({ isIn }) => isIn).length;
    const waiting = this.#visitors.length - shopping;
    return { waiting, shopping, entered: this.#enteredCount, failed: this.#failedCount };
  }

  start(count: number): void {
    for (let index = 0; index < count; index += 1) {
      const visitor = { cookie: "", isIn: false };
      this.#later(visitor, index * comesEveryMs, () => {
        this.#visitors.push(visitor);
        return this.#visit(visitor);
      });
    }
  }

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels.values()) cancel();
    this.#agent.destroy();
  }

  async #visit(visitor: Visitor): Promise<void> {
    const answer = await this.#send(visitor, "GET", "/");
    if (answer.kind === "broken") {
      this.#failedCount += 1;
      this.#later(visitor, againMs, () => this.#visit(visitor));
      return;
    }
    if (answer.headers[shopHeader] === undefined) {
      const waitSeconds = Number(answer.headers["retry-after"]);
      const waitMs = Number.isFinite(waitSeconds) ? 1_000 * waitSeconds : againMs;
      this.#later(visitor, waitMs, () => this.#visit(visitor));
      return;
    }
    visitor.isIn = true;
    const stayMs = staysMs[this.#enteredCount % staysMs.length] ?? againMs;
    this.#enteredCount += 1;
    this.#later(visitor, stayMs, () => this.#leave(visitor));
  }

  /** Leaves the shop, and returns as a new visitor without a cookie. */
  async #leave(visitor: Visitor): Promise<void> {
    await this.#send(visitor, "POST", leavePath);
    visitor.isIn = false;
    visitor.cookie = "";
    if (!this.#isStopped) await this.#visit(visitor);
  }

  #later(visitor: Visitor, delayMs: number, next: () => Promise<void>): void {
    if (this.#isStopped) return;
    const cancel = this.#parts.clock.schedule(delayMs, () => void next());
    this.#cancels.set(visitor, cancel);
  }

  async #send(visitor: Visitor, method: string, path: string): Promise<WireAnswer> {
    const { port } = this.#parts;
    const { cookie } = visitor;
    const headers = {
      ...(method === "GET" ? navigation : {}),
      ...(cookie === "" ? {} : { cookie }),
    };
    const answer = await send({ agent: this.#agent, port, path, method, headers });
    const [set] = (answer.kind === "answer" && answer.headers["set-cookie"]) || [];
    if (set !== undefined) visitor.cookie = set.split(";", 1)[0] ?? "";
    return answer;
  }
}

/** Headers that a browser sends when a user requests a page. */
const navigation = { accept: "text/html", "sec-fetch-mode": "navigate" };

/** Example: `12 s   39 wait   10 shop   14 have come in`. */
export function renderVisitors(seconds: number, counts: VisitorCounts, style: Style): string {
  const { waiting, shopping, entered, failed } = counts;
  const broken = failed === 0 ? "" : style.bad(`   ${failed} without a response`);
  const cells = [`${waiting} wait`, `${shopping} shop`, `${entered} have come in`];
  return `${style.dim(`${String(seconds).padStart(5)} s`)}   ${cells.join("   ")}${broken}`;
}

/** The shop's page, for which visitors wait. */
export const shopPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The shop</title>
<style>
  :root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif; }
  main { max-width: 34rem; margin: 12vh auto; padding: 0 1rem; }
</style>
<main>
  <h1>Welcome to the shop</h1>
  <p>You have been let in. Reload as often as you like: your session lasts until you have not been
  here for a minute.</p>
  <form method="post" action="${leavePath}"><button>Leave, and let somebody else in</button></form>
</main>
`;
