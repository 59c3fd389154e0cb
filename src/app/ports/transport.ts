import { createReflectionServices } from "../../rpc/grpc/reflection.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import { GrpcJsTransport, type GrpcJsTransportParts } from "../../rpc/grpc-js/grpc-js-transport.js";
import { NativeTransport } from "../../wire/grpc/native-transport.js";
import type { Transport } from "../../wire/grpc/transport.js";
import type { NativeTransportCounts } from "../metrics/native-transport-metrics.js";
import type { OptionValues } from "../options/options.js";

/** The options that this is about. */
export type TransportValues = Pick<
  OptionValues,
  | "transport"
  | "reflection"
  | "requestBytesMax"
  | "grpcConnectionAgeMsMax"
  | "grpcConnectionAgeGraceMs"
>;

/** What is served, by whatever transport. */
export type ServedParts = Omit<
  GrpcJsTransportParts,
  "connectionAgeMsMax" | "connectionAgeGraceMs" | "receivedBytesMax"
> & {
  /** Told how connections and streams of the native transport end. */
  readonly nativeCounts: NativeTransportCounts;
};

/** The transport that the options name. */
export function createTransport(
  values: TransportValues,
  { nativeCounts, ...served }: ServedParts,
): Transport {
  const { grpcConnectionAgeMsMax, grpcConnectionAgeGraceMs } = values;
  const { services } = served;
  const parts = {
    ...served,
    services: values.reflection ? [...services, ...createReflectionServices(services)] : services,
    receivedBytesMax: values.requestBytesMax,
    connectionAgeMsMax: grpcConnectionAgeMsMax,
    connectionAgeGraceMs: grpcConnectionAgeGraceMs,
  };
  if (values.transport === "native") {
    // Answers of one turn leave together: what is due runs after all that this turn has begun.
    const scheduleFlush = (run: () => void): void => process.nextTick(run);
    return new NativeTransport({
      ...parts,
      toFailure: toCallFailure,
      scheduleFlush,
      onConnectionEnd: (end) => nativeCounts.countEnd(end),
      onStreamError: (code) => nativeCounts.countReset(code),
    });
  }
  return new GrpcJsTransport(parts);
}
