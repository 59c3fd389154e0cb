import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { priorities } from "../../core/admission/priority.js";
import { mayAct, type Principal, visibleDomains } from "../../core/base/access-list.js";
import {
  FleetService,
  type GetHistoryRequest,
  type GetHistoryResponseSchema,
  type ReplicaHistorySchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { HistoryAsk, HistoryPart } from "./admin-parts.js";
import { askOthers, type Others } from "./ask-others.js";
import { callerOf, demandPart, serviceFilter } from "./call.js";
import { timeOf } from "./messages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** The maximum number of rules in one call. */
const rulesMax = 200;

/** How long the answers of other replicas are reused for the same question, in milliseconds. */
const sharedMs = 800;

/** The maximum number of different questions whose answers are reused at a time. */
const sharedMax = 16;

type HistoryParts = Pick<AdminServiceParts, "clock" | "history" | "replica" | "replicas">;

/** The method that returns the last minutes of each replica, for live charts. */
export function historyMethod(
  parts: HistoryParts,
): Pick<ServiceImpl<typeof FleetService>, "getHistory"> {
  const shared = new SharedAnswers(parts);
  return {
    getHistory: async (
      request,
      context,
    ): Promise<MessageInitShape<typeof GetHistoryResponseSchema>> => {
      const history = demandPart(parts.history);
      const ask = readAsk(request, context);
      const own = encodeHistory(history.read(ask), parts.replica);
      if (request.thisReplica) return { replicas: [own] };
      const { messages, silentReplicas } = await shared.ask(request, ask, context);
      const others = messages.flatMap(({ replicas }) => replicas);
      return { replicas: [own, ...others], silentReplicas };
    },
  };
}

function readAsk(request: GetHistoryRequest, context: HandlerContext): HistoryAsk {
  const reader = new RequestReader();
  const sinceEpochMs = reader.epochMs("since", request.since) ?? 0;
  const service = reader.text("service", request.service, keyNameBounds);
  const room = reader.text("room", request.room, keyNameBounds);
  if (request.rules.length > rulesMax) {
    reader.report("rules", `must have at most ${rulesMax}`);
  }
  for (const [i, { domain, label }] of request.rules.slice(0, rulesMax).entries()) {
    reader.text(`rules[${i}].domain`, domain, keyNameBounds);
    reader.text(`rules[${i}].label`, label, keyNameBounds);
  }
  reader.end();
  const principal = callerOf(context);
  return {
    sinceEpochMs,
    service: service === "" ? undefined : service,
    room: room === "" ? undefined : room,
    // Whether other rules exist is not revealed.
    rules: request.rules.filter(({ domain }) => mayAct(principal, "reader", domain)),
    domains: visibleDomains(principal),
    isServiceAsked: serviceFilter(context),
  };
}

type OtherHistories = Others<typeof FleetService.method.getHistory.output>;

/**
 * Answers of the other replicas, shared by callers that ask the same at about the same time: many
 * people look at one chart, and each question costs every replica some work.
 */
class SharedAnswers {
  readonly #parts: HistoryParts;
  readonly #asked = new Map<
    string,
    {
      readonly sinceEpochMs: number;
      readonly atMs: number;
      readonly others: Promise<OtherHistories>;
    }
  >();

  constructor(parts: HistoryParts) {
    this.#parts = parts;
  }

  ask(
    request: GetHistoryRequest,
    { sinceEpochMs }: HistoryAsk,
    context: HandlerContext,
  ): Promise<OtherHistories> {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [key, { atMs }] of this.#asked) {
      if (nowMs - atMs >= sharedMs || this.#asked.size > sharedMax) this.#asked.delete(key);
    }
    const key = keyOf(request, callerOf(context));
    const known = this.#asked.get(key);
    if (known !== undefined && known.sinceEpochMs <= sinceEpochMs) return known.others;
    const { getHistory } = FleetService.method;
    const others = askOthers(this.#parts, getHistory, { request, context });
    this.#asked.set(key, { sinceEpochMs, atMs: nowMs, others });
    return others;
  }
}

/** The parameters that determine the answer, except for its time. */
function keyOf({ service, room, rules }: GetHistoryRequest, { grants }: Principal): string {
  const names = rules.map(({ domain, label }) => [domain, label]);
  return JSON.stringify([service, room, names, grants]);
}

function encodeHistory(
  { replica, services, rules, rooms }: HistoryPart,
  name: string,
): MessageInitShape<typeof ReplicaHistorySchema> {
  const { degraded, ...columns } = replica.columns;
  return {
    replica: name,
    ...startOf(replica),
    ...columns,
    degraded: degraded.map((one) => one !== 0),
    services: services.map(({ name: service, columns: of, ...part }) => ({
      name: service,
      ...startOf(part),
      concurrencyLimit: of.concurrencyLimit,
      inFlight: of.inFlight,
      waiting: of.waiting,
      rttMs: of.rttMs,
      minRttMs: of.minRttMs,
      gradient: of.gradient,
      classes: priorities
        .map((priority) => ({
          priority,
          admitted: of[`admitted ${priority}`],
          refused: of[`refused ${priority}`],
        }))
        // Most services have requests of one or two classes.
        .filter(({ admitted, refused }) => [...admitted, ...refused].some((count) => count > 0)),
    })),
    rules: rules.map(({ domain, label, columns: { hits, overLimit }, ...part }) => {
      return { domain, label, ...startOf(part), hits, overLimit };
    }),
    rooms: rooms.map(({ name: room, columns: of, ...part }) => {
      return { name: room, ...startOf(part), ...of };
    }),
  };
}

function startOf({ startMs }: { readonly startMs: number | undefined }) {
  return startMs === undefined ? {} : { start: timeOf(startMs) };
}
