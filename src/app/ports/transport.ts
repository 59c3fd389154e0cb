import { createReflectionServices } from "../../rpc/grpc/reflection.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import { NativeTransport, type NativeTransportParts } from "../../wire/grpc/native-transport.js";
import type { NativeTransportCounts } from "../metrics/native-transport-metrics.js";
import type { OptionValues } from "../options/options.js";

/** The options that this is about. */
export type TransportValues = Pick<
  OptionValues,
  "reflection" | "requestBytesMax" | "grpcConnectionAgeMsMax" | "grpcConnectionAgeGraceMs"
>;

/** What is served. */
export type ServedParts = Pick<
  NativeTransportParts,
  "services" | "clock" | "random" | "onBug" | "isLate" | "onDropped"
> & {
  /** Told how connections and streams end. */
  readonly nativeCounts: NativeTransportCounts;
};

/** The transport of the gRPC port. */
export function createTransport(
  values: TransportValues,
  { nativeCounts, services, ...served }: ServedParts,
): NativeTransport {
  return new NativeTransport({
    ...served,
    services: values.reflection ? [...services, ...createReflectionServices(services)] : services,
    receivedBytesMax: values.requestBytesMax,
    connectionAgeMsMax: values.grpcConnectionAgeMsMax,
    connectionAgeGraceMs: values.grpcConnectionAgeGraceMs,
    toFailure: toCallFailure,
    // Answers of one turn leave together: what is due runs after all that this turn has begun.
    scheduleFlush: (run) => process.nextTick(run),
    onConnectionEnd: (end) => nativeCounts.countEnd(end),
    onStreamError: (code) => nativeCounts.countReset(code),
  });
}
