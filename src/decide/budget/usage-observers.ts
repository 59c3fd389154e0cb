import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { Usage } from "../../core/budgets/usage.js";
import type { UsageForm } from "../../core/usage/usage-forms.js";
import {
  createUsageReader,
  type UnrecognisedReason,
  type UsageReader,
} from "../../core/usage/usage-reader.js";
import type { UsageObserver, UsageObservers } from "./budget-call.js";
import { type KnownEnd, metadataFields } from "./call-charge.js";
import type { OpenCall } from "./open-calls.js";

/** A call whose response is shown on this replica, and how it is settled. */
export interface ShownCall {
  /** How its service reports usage in bodies. */
  readonly form: UsageForm;
  /** Undefined if another replica has admitted it. */
  readonly open: OpenCall | undefined;
  /** Settles it, if another replica has admitted it. */
  settle(end: KnownEnd): void;
  /** Called if its body reported nothing. */
  unrecognised(reason: UnrecognisedReason): void;
}

/** Finds the call that a response belongs to. Undefined if no such call is measured. */
type FindCall = (fields: ReadonlyMap<string, ScalarValue>) => ShownCall | undefined;

/** Response headers that the readers of bodies need, and the status. */
const responseHeaders: ReadonlySet<string> = new Set([
  ":status",
  "content-type",
  "content-encoding",
  "x-amzn-bedrock-input-token-count",
  "x-amzn-bedrock-output-token-count",
  "x-amzn-bedrock-cache-read-input-token-count",
  "x-amzn-bedrock-cache-write-input-token-count",
]);

/** Reads the usage of calls from streams that show their responses. */
export class BodyObservers implements UsageObservers {
  readonly responseHeaderNames = responseHeaders;
  readonly fieldNames = metadataFields;
  readonly #find: FindCall;

  constructor(find: FindCall) {
    this.#find = find;
  }

  open(fields: ReadonlyMap<string, ScalarValue>): UsageObserver | undefined {
    const call = this.#find(fields);
    return call && new BodyObserver(call);
  }
}

class BodyObserver implements UsageObserver {
  readonly #call: ShownCall;
  #reader: UsageReader | undefined;
  #status: number | undefined;
  #isComplete = false;
  #end: KnownEnd | undefined;

  constructor(call: ShownCall) {
    this.#call = call;
    call.open?.shown(() => this.#read());
  }

  responded(headers: ReadonlyMap<string, string>): void {
    const status = headers.get(":status");
    this.#status = status !== undefined && /^\d{3}$/.test(status) ? Number(status) : undefined;
    this.#reader ??= createUsageReader(this.#call.form, headers);
  }

  body(bytes: Uint8Array): void {
    // A call that lasts too long is settled before its end.
    if (this.#end !== undefined) return;
    this.#reader ??= createUsageReader(this.#call.form, new Map());
    this.#reader.push(bytes);
  }

  trailers(): void {}

  end(isComplete: boolean): void {
    this.#isComplete = isComplete;
    const { open } = this.#call;
    if (open === undefined) this.#call.settle(this.#read());
    else open.endShown(isComplete, () => this.#read());
  }

  /** Returns what was seen. Nothing is read afterwards. */
  #read(): KnownEnd {
    this.#end ??= this.#known();
    return this.#end;
  }

  #known(): KnownEnd {
    const status = this.#status;
    const isComplete = this.#isComplete;
    const reading = this.#reader?.end();
    const isError = status !== undefined && status >= 400;
    if (reading?.unrecognised !== undefined && !isError) {
      this.#call.unrecognised(reading.unrecognised);
    }
    const usage: Usage | undefined = reading?.usage;
    const isExact = reading?.isEstimated === false && reading.unrecognised === undefined;
    const model = reading?.model ?? "";
    return { usage, mayCost: true, status, isComplete, isExact, model };
  }
}
