import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from "@connectrpc/connect";
import type { Principal, RoleGrant } from "../../core/base/access-list.js";
import { isJsonObject, type JsonValue } from "../../core/base/json.js";
import type { OpenAnswer, ReplicaQuestion } from "../../fleet/claims/replica-questions.js";
import { FleetService, LimitService, RoomService } from "../../gen/headgate/admin/v1/admin_pb.js";
import { adminCallKey } from "./call.js";
import { fleetService } from "./fleet-service.js";
import { keyMethods } from "./key-methods.js";
import { roomService } from "./room-service.js";
import type { AdminServiceParts } from "./service-parts.js";
import { openTail } from "./tail-method.js";

/** Answers calls that other replicas forward, as if their callers had called this replica. */
export function answersFor(
  parts: AdminServiceParts,
): (question: ReplicaQuestion) => OpenAnswer | undefined {
  const limits = keyMethods(parts);
  const { listServices, getHistory, getFindings } = fleetService(parts);
  const ofFleet = FleetService.method;
  const { listRooms } = RoomService.method;
  const { listRules, topKeys, nearLimitKeys, tailDecisions } = LimitService.method;
  const methods = new Map([
    [listRules.name, answerOnce(listRules, limits.listRules)],
    [topKeys.name, answerOnce(topKeys, limits.topKeys)],
    [nearLimitKeys.name, answerOnce(nearLimitKeys, limits.nearLimitKeys)],
    [listRooms.name, answerOnce(listRooms, roomService(parts).listRooms)],
    [ofFleet.listServices.name, answerOnce(ofFleet.listServices, listServices)],
    [ofFleet.getHistory.name, answerOnce(ofFleet.getHistory, getHistory)],
    [ofFleet.getFindings.name, answerOnce(ofFleet.getFindings, getFindings)],
  ]);
  return ({ method, request, caller }) => {
    const principal = readCaller(caller);
    if (principal === undefined) return undefined;
    // The replica that forwards the call has authorized it.
    const context = ownContext(principal);
    try {
      if (method === tailDecisions.name) {
        return openTail(parts, fromBinary(tailDecisions.input, request), context);
      }
      return methods.get(method)?.(request, context);
    } catch {
      // From another version, or about something unknown here: the caller uses other answers.
      return undefined;
    }
  };
}

function answerOnce<I extends DescMessage, O extends DescMessage>(
  { input, output }: DescMethodUnary<I, O>,
  handle: (
    request: MessageShape<I>,
    context: HandlerContext,
  ) => MessageInitShape<O> | Promise<MessageInitShape<O>>,
): (request: Uint8Array, context: HandlerContext) => OpenAnswer {
  return (bytes, context) => {
    let isAnswered = false;
    return {
      take: async () => {
        if (isAnswered) return undefined;
        isAnswered = true;
        try {
          const answer = await handle(fromBinary(input, bytes), context);
          return toBinary(output, create(output, answer));
        } catch {
          return undefined;
        }
      },
      close: () => {},
    };
  };
}

/** The caller of the other replica; undefined if another version has written it. */
function readCaller(value: JsonValue): Principal | undefined {
  if (!isJsonObject(value)) return undefined;
  const { name, grants } = value;
  if (typeof name !== "string" || !Array.isArray(grants)) return undefined;
  const read = grants.map(readGrant);
  return read.every((grant) => grant !== undefined) ? { name, grants: read } : undefined;
}

function readGrant(value: JsonValue): RoleGrant | undefined {
  if (!isJsonObject(value)) return undefined;
  const { role, domains } = value;
  if (role !== "reader" && role !== "operator") return undefined;
  if (domains === undefined) return { role, domains };
  const isNames = Array.isArray(domains) && domains.every((one) => typeof one === "string");
  return isNames ? { role, domains } : undefined;
}

/** The context of a call that came through no port; its caller has been authorized. */
function ownContext(principal: Principal): HandlerContext {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd: () => {} };
  return createHandlerContext({
    service: LimitService,
    method: LimitService.method.tailDecisions,
    protocolName: "own",
    requestMethod: "POST",
    url: "http://own/",
    contextValues: createContextValues().set(adminCallKey, call),
  });
}
