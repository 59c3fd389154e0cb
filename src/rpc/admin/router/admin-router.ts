import {
  type ConnectError,
  createConnectRouter,
  type Interceptor,
  type StreamResponse,
} from "@connectrpc/connect";
import type { Compression, UniversalHandler } from "@connectrpc/connect/protocol";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../../gen/headgate/admin/v1/admin_pb.js";
import { budgetService } from "../budgets/budget-service.js";
import { adminCallKey } from "../call.js";
import { codeName, toConnectError } from "../connect-errors.js";
import { explainMethod } from "../explain/explain-method.js";
import { fleetService } from "../fleet-service.js";
import { keyMethods } from "../key-methods.js";
import { adminMessageBytesMax, policyMessageBytesMax, replayMessageBytesMax } from "../methods.js";
import { overrideMethods } from "../override-methods.js";
import { policyService } from "../policy-service.js";
import { quotaService } from "../quota-service.js";
import { answersOnly } from "../request-body.js";
import { roomService } from "../room-service.js";
import type { AdminServiceParts } from "../service-parts.js";
import { tailMethod } from "../tail-method.js";

interface AdminRouterOptions {
  /** The compressions of responses. */
  readonly compressions: readonly Compression[];
  /** Ends streams when this process stops. */
  readonly shutdownSignal: AbortSignal;
  readonly onBug: (thrown: unknown) => void;
}

/** Maximum deadline that a caller may set, in milliseconds. Streams have none. */
const timeoutMsMax = 86_400_000;

/** Shorter responses, like those to consoles each second, are sent faster than compressed. */
const compressedBytesMin = 8_192;

/** Creates the services of the admin port for Connect, gRPC and gRPC-Web: handlers by path. */
export function createAdminHandlers(
  parts: AdminServiceParts,
  options: AdminRouterOptions,
): ReadonlyMap<string, UniversalHandler> {
  const { compressions, shutdownSignal } = options;
  const router = createConnectRouter({
    acceptCompression: compressions.map(answersOnly),
    compressMinBytes: compressedBytesMin,
    readMaxBytes: adminMessageBytesMax,
    maxTimeoutMs: timeoutMsMax,
    shutdownSignal,
    interceptors: [answering(options)],
    // A misspelt field is reported, and not ignored.
    jsonOptions: { ignoreUnknownFields: false },
    binaryOptions: { readUnknownFields: false },
  });
  const limits = {
    ...keyMethods(parts),
    ...overrideMethods(parts),
    ...explainMethod(parts),
    ...tailMethod(parts),
  };
  const policies = policyService(parts);
  router.service(LimitService, limits);
  router.service(PolicyService, policies);
  router.service(QuotaService, quotaService(parts));
  router.service(RoomService, roomService(parts));
  router.service(BudgetService, budgetService(parts));
  router.service(FleetService, fleetService(parts));
  // Methods with policies accept longer requests. The last handler of a path counts.
  const long = { readMaxBytes: policyMessageBytesMax };
  router.rpc(LimitService.method.explain, limits.explain, long);
  router.rpc(PolicyService.method.validatePolicy, policies.validatePolicy, long);
  router.rpc(PolicyService.method.applyPolicy, policies.applyPolicy, long);
  router.rpc(PolicyService.method.testPolicy, policies.testPolicy, long);
  const longest = { readMaxBytes: replayMessageBytesMax };
  router.rpc(PolicyService.method.replayLog, policies.replayLog, longest);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

/** Converts failures to codes, in one place, and reports how calls end. */
function answering({ onBug }: AdminRouterOptions): Interceptor {
  const fail = (thrown: unknown): ConnectError => {
    const { error, isBug } = toConnectError(thrown);
    if (isBug) onBug(thrown);
    return error;
  };
  return (next) => async (request) => {
    const { onRead, onEnd } = request.contextValues.get(adminCallKey);
    onRead();
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: untilEnd(response, fail, onEnd) };
      onEnd("ok");
      return response;
    } catch (thrown) {
      const error = fail(thrown);
      onEnd(codeName(error.code));
      throw error;
    }
  };
}

/**
 * Forwards the messages of a stream, and reports how it ends. One that is no longer read is
 * canceled: its reader ends it, or throws the error of the caller's connection into it, which is
 * not a fault of the method.
 */
async function* untilEnd(
  { message }: StreamResponse,
  fail: (thrown: unknown) => ConnectError,
  onEnd: (code: string) => void,
): StreamResponse["message"] {
  const messages = message[Symbol.asyncIterator]();
  let code = "canceled";
  const next = async () => {
    try {
      return await messages.next();
    } catch (thrown) {
      const error = fail(thrown);
      code = codeName(error.code);
      throw error;
    }
  };
  try {
    for (let taken = await next(); taken.done !== true; taken = await next()) yield taken.value;
    code = "ok";
  } finally {
    // The method releases what it holds.
    await messages.return?.();
    onEnd(code);
  }
}
