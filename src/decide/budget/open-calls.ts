import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { ReservationId } from "../../core/budgets/budget-ledger.js";
import type { Usage } from "../../core/budgets/usage.js";
import { type Expiring, ExpiryHeap } from "../../core/collections/expiry-heap.js";
import type { UsageSource } from "../../policy/budgets/budget-policy.js";
import type { BudgetedCall, CallEnd, ReportingResponse } from "./budget-call.js";
import type { CallCharge, KnownEnd } from "./call-charge.js";
import { reportedUsage } from "./call-facts.js";

/**
 * How long the end of a call waits for the usage that another filter reads from its body, in
 * milliseconds. That filter may be served by another replica, which settles the call itself.
 */
const usageGraceMs = 5_000;

/** Parameters of an open call. */
interface OpenCallParts {
  readonly charge: CallCharge;
  /** Where its usage is reported. Bodies are shown by another filter: see `usageGraceMs`. */
  readonly source: UsageSource;
  /** When it is settled at the latest, on the monotonic clock. */
  readonly expiresMs: number;
}

/** Calls that this replica has admitted and not yet settled. */
export class OpenCalls {
  readonly #byId = new Map<ReservationId, OpenCall>();
  readonly #expiring = new ExpiryHeap<OpenCall>();
  readonly #nowMs: () => number;
  #isCutting = false;

  /** @param nowMs the monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Calls in flight, including those that wait for their usage. */
  get count(): number {
    return this.#byId.size;
  }

  /** Whether the end of a stream no longer is the end of its call; see `cut`. */
  get isCutting(): boolean {
    return this.#isCutting;
  }

  /** Called when this process cuts its streams. Their calls continue without them. */
  cut(): void {
    this.#isCutting = true;
  }

  open(parts: OpenCallParts): OpenCall {
    const call = new OpenCall(this, parts);
    const { id } = parts.charge;
    if (id !== undefined) this.#byId.set(id, call);
    this.#expiring.push(call);
    return call;
  }

  find(id: ReservationId): OpenCall | undefined {
    return this.#byId.get(id);
  }

  /** Settles calls that last too long, or whose usage has not arrived in time. */
  expire(nowMs: number): void {
    for (;;) {
      const call = this.#expiring.first;
      if (call === undefined || call.expiresMs > nowMs) return;
      call.expire();
    }
  }

  /** Settles calls that have ended, at once. Others are left to their leases. */
  close(): void {
    for (const call of [...this.#byId.values()]) if (call.hasEnded) call.expire();
  }

  /** The call has ended. Its usage may still arrive. */
  wait(call: OpenCall): void {
    this.#expiring.remove(call);
    call.expiresMs = Math.min(call.expiresMs, this.#nowMs() + usageGraceMs);
    this.#expiring.push(call);
  }

  /** The call is settled. */
  forget(call: OpenCall, id: ReservationId | undefined): void {
    this.#expiring.remove(call);
    if (id !== undefined) this.#byId.delete(id);
  }
}

/**
 * A call that budgets have admitted. It is settled once: by its own stream, by the stream that
 * shows its response if that is on this replica, or when its time is over.
 */
export class OpenCall implements BudgetedCall, Expiring {
  readonly #calls: OpenCalls;
  readonly #charge: CallCharge;
  readonly #source: UsageSource;
  #metadata: ReadonlyMap<string, ScalarValue> | undefined;
  #isSettled = false;
  #reported: Usage | undefined;
  #end: CallEnd | undefined;
  /** Reads what the stream that shows its response has seen. Undefined: it is not here. */
  #look: (() => KnownEnd) | undefined;
  expiresMs: number;
  heapPlace: number | undefined;

  constructor(calls: OpenCalls, { charge, source, expiresMs }: OpenCallParts) {
    this.#calls = calls;
    this.#charge = charge;
    this.#source = source;
    this.expiresMs = expiresMs;
  }

  get metadata(): ReadonlyMap<string, ScalarValue> {
    this.#metadata ??= this.#charge.metadata();
    return this.#metadata;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  responded(facts: ReportingResponse): void {
    const reported = reportedUsage(this.#source, facts);
    if (reported !== undefined) this.#reported = { ...this.#reported, ...reported };
  }

  end(end: CallEnd): void {
    if (this.#isSettled || this.#isLeftToOthers(end)) return;
    this.#end = end;
    const isError = end.status !== undefined && end.status >= 400;
    const mayCost = end.hasResponse || end.mayGoOn !== undefined;
    if (this.#source.kind !== "body" || !mayCost || isError) this.#settle();
    else this.#calls.wait(this);
  }

  /**
   * Whether its stream was cut, and its usage is not known here. Then it stays reserved until the
   * lease ends, and is charged by the replica that sees its response, or as `whenLost` says.
   */
  #isLeftToOthers({ mayGoOn, hasResponse }: CallEnd): boolean {
    if (!this.#calls.isCutting || mayGoOn === undefined) return false;
    if (this.#look !== undefined || this.#reported !== undefined) return false;
    return this.#source.kind === "body" || !hasResponse;
  }

  /** A stream shows the response on this replica. */
  shown(look: () => KnownEnd): void {
    this.#look = look;
  }

  /** A stream that showed it has ended. If complete, what it saw counts, whatever others see. */
  endShown(isComplete: boolean, look: () => KnownEnd): void {
    if (isComplete) this.#look = look;
    // It may break while the call continues. Then the call's own end counts.
    if (!this.#isSettled && (isComplete || this.#end !== undefined)) this.#settle();
  }

  /** Time is over: settles it with what is known. */
  expire(): void {
    if (!this.#isSettled) this.#settle();
  }

  #settle(): void {
    this.#isSettled = true;
    this.#calls.forget(this, this.#charge.id);
    const end = this.#end;
    const seen = this.#look?.();
    this.#charge.settle({
      usage: seen?.usage ?? this.#reported,
      // Without an end, it lasts longer than calls may, and has probably cost what they cost.
      mayCost: seen !== undefined || end?.hasResponse !== false || end.mayGoOn !== undefined,
      status: seen?.status ?? end?.status,
      isComplete: seen?.isComplete ?? end?.hasResponse === true,
      isExact: seen?.isExact ?? this.#reported !== undefined,
      model: seen?.model ?? "",
    });
  }
}
