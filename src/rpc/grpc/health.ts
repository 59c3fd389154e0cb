import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ServiceError } from "../../core/base/errors.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import {
  answerAtOnce,
  type MethodHandler,
  type ServiceHandlers,
  type StreamContext,
} from "../../wire/grpc/service.js";
import { FieldReader, fieldTag } from "../codec/field-reader.js";
import { GrpcFailure } from "./status.js";

/** The known names: the whole server, and the name in envoyproxy/ratelimit's probes. */
const healthServiceNames: readonly string[] = ["", "ratelimit"];

/** Maximum size of a request, in bytes: a service's name, of which two are known. */
export const healthRequestBytesMax = 4_096;

/** Maximum number of open Watch streams. Further ones fail with RESOURCE_EXHAUSTED. */
export const healthWatchersMax = 256;

/** Whether this process accepts calls. One owner sets it; watchers are notified of changes. */
export class Health {
  #isServing = false;
  readonly #listeners = new Set<() => void>();

  get isServing(): boolean {
    return this.#isServing;
  }

  /** Starts to report that calls are accepted. */
  serve(): void {
    this.#set(true);
  }

  /** Reports from now on that load balancers should use another process. */
  stopServing(): void {
    this.#set(false);
  }

  /** Calls back after every change, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(isServing: boolean): void {
    if (this.#isServing === isServing) return;
    this.#isServing = isServing;
    for (const listener of this.#listeners) listener();
  }
}

/** Creates the standard health service. Source: grpc/health/v1/health.proto. */
export function createHealthService(health: Health): ServiceHandlers {
  let watcherCount = 0;

  async function* watch(request: Uint8Array, call: StreamContext): AsyncIterable<Uint8Array> {
    const name = decodeName(request);
    if (watcherCount >= healthWatchersMax) {
      throw new GrpcFailure(grpcStatuses.resourceExhausted, "Too many health watchers.");
    }
    watcherCount += 1;
    try {
      yield* statuses(name, health, call.signal);
    } finally {
      watcherCount -= 1;
    }
  }

  const methods: readonly MethodHandler[] = [
    { kind: "unary", name: "Check", handle: answerAtOnce((request) => check(request, health)) },
    { kind: "unary", name: "List", handle: answerAtOnce(() => list(health)) },
    { kind: "serverStream", name: "Watch", handle: watch },
  ];
  return {
    name: "grpc.health.v1.Health",
    methods: methods.map((method) => ({ ...method, bytesMax: healthRequestBytesMax })),
  };
}

function check(request: Uint8Array, health: Health): Uint8Array {
  const name = decodeName(request);
  if (!healthServiceNames.includes(name)) {
    throw new GrpcFailure(grpcStatuses.notFound, 'Known service names are "" and "ratelimit".');
  }
  return encodeStatus(servingStatus(health));
}

/** Source: grpc.health.v1.HealthListResponse, a map. */
function list(health: Health): Uint8Array {
  const status = encodeStatus(servingStatus(health));
  const writer = new BinaryWriter();
  for (const name of healthServiceNames) {
    writer.tag(1, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(name);
    writer.tag(2, WireType.LengthDelimited).bytes(status).join();
  }
  return writer.finish();
}

/** Yields the status now and after every change, never the same twice in a row. */
async function* statuses(
  name: string,
  health: Health,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  if (!healthServiceNames.includes(name)) {
    // The protocol keeps the stream open, in case the service appears later. Here it never does.
    yield encodeStatus(servingStatuses.serviceUnknown);
    while (!signal.aborted) await nextChange(health, signal);
    return;
  }
  let sent: ServingStatus | undefined;
  while (!signal.aborted) {
    const status = servingStatus(health);
    if (status === sent) {
      await nextChange(health, signal);
      continue;
    }
    sent = status;
    yield encodeStatus(status);
  }
}

/** Resolves at the next change, or when the stream ends. */
function nextChange(health: Health, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      stopListening();
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const stopListening = health.onChange(finish);
    signal.addEventListener("abort", finish);
  });
}

/** Source: grpc.health.v1.HealthCheckResponse.ServingStatus. */
const servingStatuses = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;

type ServingStatus = (typeof servingStatuses)[keyof typeof servingStatuses];

function servingStatus(health: Health): ServingStatus {
  return health.isServing ? servingStatuses.serving : servingStatuses.notServing;
}

/** Source: grpc.health.v1.HealthCheckRequest. */
const serviceTag = fieldTag(1, WireType.LengthDelimited);

function decodeName(request: Uint8Array): string {
  try {
    const reader = new FieldReader(request);
    let service = "";
    while (reader.next()) {
      if (reader.tag === serviceTag) service = reader.text();
      else reader.skip();
    }
    return service;
  } catch {
    throw new ServiceError("REQUEST_INVALID", "The message is not a HealthCheckRequest.");
  }
}

/** Source: grpc.health.v1.HealthCheckResponse. */
function encodeStatus(status: ServingStatus): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int32(status).finish();
}
