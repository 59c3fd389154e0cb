import { Agent, type ClientRequest, request } from "node:http";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";

/** A user who calls the model. */
export interface LlmUser {
  readonly name: string;
  readonly team: string;
  readonly form: "openai" | "anthropic";
  /** Number of parallel calls. */
  readonly parallel: number;
  readonly outputTokens: number;
  /** Time between an answer and the next call, in milliseconds. */
  readonly restMs: number;
  /** Disconnects after this many bytes of an answer. Absent: reads all of it. */
  readonly leavesAtBytes?: number;
}

/** A researcher with a large budget, a team with a small one, and a script out of control. */
export const llmUsers: readonly LlmUser[] = [
  {
    name: "ada",
    team: "research",
    form: "openai",
    parallel: 1,
    outputTokens: 40,
    restMs: 300,
  },
  { name: "bob", team: "web", form: "openai", parallel: 2, outputTokens: 60, restMs: 50 },
  {
    name: "cleo",
    team: "web",
    form: "anthropic",
    parallel: 1,
    outputTokens: 80,
    restMs: 200,
    leavesAtBytes: 3_000,
  },
  { name: "script", team: "batch", form: "openai", parallel: 6, outputTokens: 200, restMs: 500 },
];

/** Outcome of a call. */
export type LlmEnd =
  | "answered"
  /** Answered by another model than the requested one. */
  | "fallback"
  | "left"
  /** The cause of the refusal, as a word and as a sentence. */
  | { readonly refusedBy: string; readonly detail: string }
  | { readonly failed: string };

interface LlmCallersParts {
  readonly clock: Clock;
  /** Port of Envoy. */
  readonly port: number;
  readonly ended: (user: LlmUser, end: LlmEnd) => void;
}

/** The model that all users request. */
export const askedModel = "large-1";

/** Calls the model like its users, until `stop`. */
export class LlmCallers {
  readonly #parts: LlmCallersParts;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #cancels = new Set<Cancel>();
  readonly #calls = new Set<ClientRequest>();
  #isStopped = false;

  constructor(parts: LlmCallersParts) {
    this.#parts = parts;
  }

  start(users: readonly LlmUser[]): void {
    for (const user of users) {
      for (let count = 0; count < user.parallel; count += 1) this.#call(user);
    }
  }

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels) cancel();
    for (const call of this.#calls) call.destroy();
    this.#agent.destroy();
  }

  #call(user: LlmUser): void {
    const { clock, port, ended } = this.#parts;
    const sent = sendCall(user, { agent: this.#agent, port }, (end) => {
      this.#calls.delete(sent);
      if (this.#isStopped) return;
      ended(user, end);
      const cancel = clock.schedule(user.restMs, () => {
        this.#cancels.delete(cancel);
        this.#call(user);
      });
      this.#cancels.add(cancel);
    });
    this.#calls.add(sent);
  }
}

/** Returns the path and the body of a call. */
function callOf({ form, outputTokens }: LlmUser): { readonly path: string; readonly body: string } {
  const messages = [{ role: "user", content: "Say something." }];
  const common = { model: askedModel, stream: true, max_tokens: outputTokens, messages };
  return form === "anthropic"
    ? { path: "/v1/messages", body: JSON.stringify(common) }
    : {
        path: "/v1/chat/completions",
        body: JSON.stringify({ ...common, stream_options: { include_usage: true } }),
      };
}

/** @param ended called once */
function sendCall(
  user: LlmUser,
  { agent, port }: { readonly agent: Agent; readonly port: number },
  ended: (end: LlmEnd) => void,
): ClientRequest {
  const { path, body } = callOf(user);
  const headers = {
    "content-type": "application/json",
    "x-user": user.name,
    "x-team": user.team,
  };
  let isEnded = false;
  const end = (how: LlmEnd): void => {
    if (isEnded) return;
    isEnded = true;
    ended(how);
  };
  const sent = request({ host: "127.0.0.1", port, agent, path, method: "POST", headers });
  sent.once("error", () => end({ failed: "no response" }));
  sent.once("response", (response) => {
    const { statusCode = 0 } = response;
    let byteCount = 0;
    let isOther = false;
    let text = "";
    response.on("data", (chunk: Buffer) => {
      // Both providers include the model in their first event.
      if (byteCount === 0) isOther = !chunk.includes(`"model":"${askedModel}"`);
      byteCount += chunk.length;
      if (statusCode !== httpStatuses.ok && text.length < refusalCharsMax) text += String(chunk);
      if (user.leavesAtBytes === undefined || byteCount < user.leavesAtBytes) return;
      end("left");
      sent.destroy();
    });
    response.once("error", () => end({ failed: "the response broke off" }));
    response.once("end", () => {
      if (statusCode === httpStatuses.ok) end(isOther ? "fallback" : "answered");
      else end(readRefusal(text) ?? { failed: `status ${statusCode}` });
    });
  });
  sent.end(body);
  return sent;
}

/** Maximum length of a refusal's body that is read, in UTF-16 units. */
const refusalCharsMax = 2_000;

/** Reads `application/problem+json` of Headgate; undefined if it is something else. */
function readRefusal(text: string): LlmEnd | undefined {
  const [, refusedBy] = /"cause":"(\w+)"/.exec(text) ?? [];
  const [, detail = ""] = /"detail":"([^"\\]*)"/.exec(text) ?? [];
  return refusedBy === undefined ? undefined : { refusedBy, detail };
}
