import type { Cancel } from "../../core/base/clock.js";
import { cutText } from "../../core/base/text.js";
import type { BucketId, DividesQuotas, QuotaSession } from "../../decide/quota/quota-session.js";
import type {
  BidiAnswers,
  BidiContext,
  BidiReader,
  ServiceHandlers,
} from "../../wire/grpc/service.js";
import { BackwardWriter } from "../codec/backward-writer.js";
import { type ControlStream, type ControlStreams, readMessages } from "../nodes/control-stream.js";
import { nodeIdCharsMax } from "../nodes/node-identity.js";
import { decodeUsage, encodeActions, readBucketId, type UsageMessage } from "./quota-messages.js";
import { type TurnJob, TurnQueue } from "./turn-queue.js";

/** The service's full name. Source: envoy/service/rate_limit_quota/v3/rlqs.proto. */
const quotaServiceName = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService";

/**
 * Reports of buckets that are looked at in a second of one stream. Callers choose what buckets
 * there are, so those of more are left alone, and the stream goes on for all others.
 */
export const bucketReportsPerSecondMax = 2_000;

/** Usages that are read of one message; those behind them are passed over, and not counted. */
const usagesMax = 2 * bucketReportsPerSecondMax;

/** The most buckets that one message of ours is about. */
export const actionsPerMessageMax = 100;

/** Reports that are looked at without a look at how long it takes. */
const reportsPerStep = 20;

/** How long a stream may leave unread what it was sent, in milliseconds. */
export const unreadMsMax = 30_000;

/** The metadata in which an Envoy says what it is called. */
const quotaNodeHeader = "x-headgate-node";

/** What the service of quotas is made of. */
export interface QuotaServiceParts {
  readonly streams: ControlStreams;
  readonly quotas: DividesQuotas;
  /** A report that is not looked at, by why. */
  readonly onIgnored: (cause: IgnoredReport) => void;
}

/** Why a bucket's report is not looked at. */
type IgnoredReport =
  | Extract<ReturnType<typeof readBucketId>, { kind: "fault" }>["fault"]
  | "too_many";

/**
 * Assigns quotas to Envoys that enforce them by themselves: usage comes in, assignments go out,
 * whenever there is a reason to and not only after a report.
 *
 * Source: envoy.service.rate_limit_quota.v3.RateLimitQuotaService; how Envoy behaves was
 * measured on 1.40 (docs/internals/quotas.md).
 */
export function createQuotaService(parts: QuotaServiceParts): ServiceHandlers {
  const writer = new BackwardWriter();
  const turns = new TurnQueue(parts.streams.parts.clock);
  return {
    name: quotaServiceName,
    methods: [
      {
        kind: "bidi",
        name: "StreamRateLimitQuotas",
        open: (call, answers) => new QuotaStream(parts, { call, answers, writer, turns }).reader,
      },
    ],
  };
}

interface QuotaStreamTerms {
  readonly call: BidiContext;
  readonly answers: BidiAnswers;
  /** Of all streams. */
  readonly writer: BackwardWriter;
  readonly turns: TurnQueue;
}

class QuotaStream implements TurnJob {
  readonly reader: BidiReader;
  readonly #parts: QuotaServiceParts;
  readonly #stream: ControlStream;
  readonly #session: QuotaSession;
  readonly #writer: BackwardWriter;
  readonly #turns: TurnQueue;
  /** The message in work, and how many of its usages are done. */
  #message = noMessage;
  #doneCount = 0;
  /** Whether the rest of it waits for another turn. */
  #isWaiting = false;
  #secondMs = Number.NEGATIVE_INFINITY;
  #reportCount = 0;
  #isFull = false;
  /** Whether the next message waits until this Envoy reads. */
  #isHeldUp = false;
  #cancelUnread: Cancel = () => {};

  constructor(parts: QuotaServiceParts, { call, answers, writer, turns }: QuotaStreamTerms) {
    this.#parts = parts;
    this.#writer = writer;
    this.#turns = turns;
    const { peer } = call;
    const node = saidNodeOf(call);
    this.#stream = parts.streams.open("quotas", answers, { peer, node });
    const wake = (): void => this.#stream.guard(() => this.#send());
    this.#session = parts.quotas.open({
      node: node ?? nodeName(call.metadata("x-forwarded-for")),
      peer,
      readId: (id) => this.#readId(id),
      wake,
    });
    this.#stream.onOver(() => {
      this.#cancelUnread();
      this.#message = noMessage;
      this.#session.close();
    });
    this.reader = readMessages({
      stream: this.#stream,
      decode: (bytes) => decodeUsage(bytes, usagesMax),
      take: (message) => this.#take(message),
      isReady: () => {
        this.#isWaiting = this.leftCount > 0;
        return !this.#isWaiting && this.#isRead();
      },
      onDrain: () => this.#drain(),
    });
  }

  #take({ domain, usages }: UsageMessage): void {
    this.#stream.hear();
    const count = this.#countWithinPace(usages.length);
    for (let i = count; i < usages.length; i += 1) this.#parts.onIgnored("too_many");
    this.#message = { domain, usages: count < usages.length ? usages.slice(0, count) : usages };
    this.#doneCount = 0;
    this.#isWaiting = false;
    this.#turns.add(this);
  }

  /** Reports of its message that are still to be looked at. Until then, it reads no other one. */
  get leftCount(): number {
    return Math.max(0, this.#message.usages.length - this.#doneCount);
  }

  step(): number {
    let units = 0;
    this.#stream.guard(() => {
      const { domain, usages } = this.#message;
      const end = this.#doneCount + reportsPerStep;
      units = this.#session.report(domain, usages.slice(this.#doneCount, end));
      this.#doneCount = end;
      if (this.leftCount > 0) return;
      this.#message = noMessage;
      this.#send();
      if (this.#isWaiting && this.#isRead()) this.#stream.next();
    });
    return units;
  }

  /** Whether the Envoy reads what it is sent. Otherwise, the next message waits for that. */
  #isRead(): boolean {
    this.#isHeldUp = this.#isFull;
    return !this.#isFull;
  }

  #readId(id: string): BucketId | undefined {
    const read = readBucketId(id);
    if (read.kind === "id") return read;
    this.#parts.onIgnored(read.fault);
    return undefined;
  }

  /** How many of so many more reports are looked at in this second. */
  #countWithinPace(count: number): number {
    const nowMs = this.#parts.streams.parts.clock.monotonicMs();
    if (nowMs - this.#secondMs >= 1_000) {
      this.#secondMs = nowMs;
      this.#reportCount = 0;
    }
    const within = Math.min(count, bucketReportsPerSecondMax - this.#reportCount);
    this.#reportCount += within;
    return within;
  }

  /**
   * What is not read waits with those who divide: of each bucket the newest, and nothing else.
   * Until then no report is read either: it would seem to show that its Envoy knows what it was
   * told.
   */
  #send(): void {
    while (!this.#isFull) {
      const actions = this.#session.takeActions(actionsPerMessageMax);
      if (actions.length === 0) return;
      if (this.#stream.send(encodeActions(actions, this.#writer))) continue;
      this.#isFull = true;
      const { clock } = this.#parts.streams.parts;
      this.#cancelUnread = clock.schedule(unreadMsMax, () => this.#stream.fail("unread"));
    }
  }

  #drain(): void {
    this.#isFull = false;
    this.#cancelUnread();
    this.#stream.guard(() => this.#send());
    if (!this.#isHeldUp || this.#isFull) return;
    this.#isHeldUp = false;
    this.#stream.next();
  }
}

const noMessage: UsageMessage = { domain: "", usages: [] };

/** What the Envoy calls itself. What it has not filled in says nothing. */
function saidNodeOf(call: BidiContext): string | undefined {
  const said = call.metadata(quotaNodeHeader);
  return said === undefined || said.includes("%") ? undefined : nodeName(said);
}

function nodeName(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : cutText(text, nodeIdCharsMax);
}
