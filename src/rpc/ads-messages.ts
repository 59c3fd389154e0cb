import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import type { DiscoveredResource } from "./rate-limit-config.js";
import { grpcStatuses } from "./status.js";

/** Who asks, in every request. */
export interface DiscoveryNode {
  /** The server chooses the resources by it. */
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly version: string;
}

/** The whole set of resources of one type, as a server sent it. */
export interface DiscoveredSet {
  readonly typeUrl: string;
  /** The server's own name for this set. */
  readonly version: string;
  /** Names this response in the answer to it. */
  readonly nonce: string;
  readonly resources: readonly DiscoveredResource[];
}

/** What a request says beside who asks and for what. */
export interface DiscoveryAnswer {
  /** The set in force that came over this stream; empty when none did. */
  readonly version: string;
  /** Of the response that is answered; empty in the first request of a stream. */
  readonly nonce: string;
  /** Why the set is refused; absent when it is not. */
  readonly refusal?: string;
}

/** The longest reason for a refusal that is sent, in characters. */
export const refusalCharsMax = 4_096;

/**
 * A subscription to all resources of a type, or the answer to a set of them.
 *
 * Source: envoy.service.discovery.v3.DiscoveryRequest.
 */
export function encodeDiscoveryRequest(
  node: DiscoveryNode,
  typeUrl: string,
  { version, nonce, refusal }: DiscoveryAnswer,
): Uint8Array {
  const metadata: JsonObject = { ...node.metadata };
  return toBinary(
    DiscoveryRequestSchema,
    create(DiscoveryRequestSchema, {
      node: {
        id: node.id,
        userAgentName: "headgate",
        userAgentVersionType: { case: "userAgentVersion", value: node.version },
        ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      },
      typeUrl,
      versionInfo: version,
      responseNonce: nonce,
      ...(refusal === undefined ? {} : { errorDetail: refusalStatus(refusal) }),
    }),
  );
}

function refusalStatus(text: string): { readonly code: number; readonly message: string } {
  const isLong = text.length > refusalCharsMax;
  // Half of a character that a cut leaves behind is no text, and protobuf refuses it.
  const cut = text.slice(0, refusalCharsMax - 3).replace(/[\ud800-\udbff]$/, "");
  return { code: grpcStatuses.invalidArgument, message: isLong ? `${cut}...` : text };
}

/** Reads a response; its resources stay bytes. Undefined for bytes that are none. */
export function decodeDiscoveryResponse(bytes: Uint8Array): DiscoveredSet | undefined {
  try {
    const { typeUrl, versionInfo, nonce, resources } = fromBinary(DiscoveryResponseSchema, bytes, {
      readUnknownFields: false,
    });
    return {
      typeUrl,
      version: versionInfo,
      nonce,
      resources: resources.map(({ typeUrl: type, value }) => ({ typeUrl: type, value })),
    };
  } catch {
    return undefined;
  }
}
