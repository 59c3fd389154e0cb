import { type ErrorCode, ServiceError } from "../../src/core/base/errors.js";
import type { ScriptCall, ScriptReply, StoreConnection } from "../../src/store/connection.js";

/** How one call is answered; `hangs` never is, until the test calls `release`. */
export type FakeAnswer =
  | { readonly kind: "reply"; readonly reply: ScriptReply }
  | { readonly kind: "fails"; readonly code: ErrorCode }
  | { readonly kind: "hangs" };

/** A connection that answers as a test says; it knows nothing of scripts. */
export class FakeConnection implements StoreConnection {
  answer: FakeAnswer = { kind: "reply", reply: 1 };
  readonly calls: ScriptCall[] = [];
  #held: (() => void)[] = [];

  async run(call: ScriptCall): Promise<ScriptReply> {
    this.calls.push(call);
    if (this.answer.kind === "hangs") await new Promise<void>((done) => this.#held.push(done));
    const { answer } = this;
    if (answer.kind === "fails") throw new ServiceError(answer.code);
    return answer.kind === "reply" ? answer.reply : undefined;
  }

  /** Lets calls that hang go on, with the answer as it is now. */
  release(): void {
    for (const done of this.#held.splice(0)) done();
  }
}
