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
 * Maximum number of bucket reports that are processed per second and stream. Callers choose which
 * buckets there are, so further reports are ignored, and the stream continues for all others.
 */
export const bucketReportsPerSecondMax = 2_000;

/** Maximum number of usages read of one message. Further ones are skipped, and not counted. */
const usagesMax = 2 * bucketReportsPerSecondMax;

/** Maximum number of buckets in one message to an Envoy. */
export const actionsPerMessageMax = 100;

/** Reports that are processed between two checks of their cost. */
const reportsPerStep = 20;

/** How long an Envoy may leave messages unread, in milliseconds. */
export const unreadMsMax = 30_000;

/** The metadata in which an Envoy states its name. */
const quotaNodeHeader = "x-headgate-node";

/** Dependencies of the quota service. */
export interface QuotaServiceParts {
  readonly streams: ControlStreams;
  readonly quotas: DividesQuotas;
  /** Called for each report that is ignored. */
  readonly onIgnored: (cause: IgnoredReport) => void;
}

/** Why a bucket's report is ignored. */
type IgnoredReport =
  | Extract<ReturnType<typeof readBucketId>, { kind: "fault" }>["fault"]
  | "too_many";

/**
 * Assigns quotas to Envoys, which enforce them by themselves. Receives usage, and sends assignments
 * whenever there is a reason, not only after a report.
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
  /** Shared by all streams. */
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
  /** The current message, and how many of its usages are processed. */
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

  /** Unprocessed reports of its message. While there are any, it reads no other message. */
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

  /** Whether the Envoy reads its messages. Otherwise, its own next message waits until it does. */
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

  /** Returns how many of these further reports are processed in this second. */
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
   * Sends actions while the Envoy reads them. The session keeps the rest: only the newest action of
   * each bucket. Until then, no report is read either, because it would suggest that the Envoy
   * knows its assignments.
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

/** Returns the name that the Envoy states. A placeholder that is not replaced counts as none. */
function saidNodeOf(call: BidiContext): string | undefined {
  const said = call.metadata(quotaNodeHeader);
  return said === undefined || said.includes("%") ? undefined : nodeName(said);
}

function nodeName(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : cutText(text, nodeIdCharsMax);
}
