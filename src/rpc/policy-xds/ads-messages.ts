import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { DiscoveryRequestSchema } from "../../gen/envoy/service/discovery/v3/discovery_pb.js";
import {
  FieldReader,
  fieldTag,
  LastPart,
  leanPartsMax,
  passTwoParts,
  TooManyFieldsError,
} from "../codec/field-reader.js";
import { type DiscoveredResource, resourcesMax } from "./rate-limit-config.js";

/** The node in every request. */
export interface DiscoveryNode {
  /** The server selects the resources by it. */
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly version: string;
}

/** The whole set of resources of one type, as a server sent it. */
export interface DiscoveredSet {
  readonly typeUrl: string;
  /** The server's own name for this set. */
  readonly version: string;
  /** Identifies this response in the answer to it. */
  readonly nonce: string;
  readonly resources: readonly DiscoveredResource[];
}

/** The contents of a request besides its node and type. */
interface DiscoveryAnswer {
  /** The version of the active set that came over this stream. Empty if none did. */
  readonly version: string;
  /** The nonce of the answered response. Empty in the first request of a stream. */
  readonly nonce: string;
  /** Why the set is refused. Absent if it is not. */
  readonly refusal?: string;
}

/** Maximum length of the reason for a refusal, in characters. */
export const refusalCharsMax = 4_096;

/**
 * Encodes a subscription to all resources of a type, or the answer to a set of them.
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
  // A cut may leave half of a character, which is not text, and which protobuf rejects.
  const cut = text.slice(0, refusalCharsMax - 3).replace(/[\ud800-\udbff]$/, "");
  return { code: grpcStatuses.invalidArgument, message: isLong ? `${cut}...` : text };
}

const { LengthDelimited } = WireType;

/** Source: DiscoveryResponse. */
const responseTags = {
  versionInfo: fieldTag(1, LengthDelimited),
  resources: fieldTag(2, LengthDelimited),
  typeUrl: fieldTag(4, LengthDelimited),
  nonce: fieldTag(5, LengthDelimited),
} as const;

/** A resource has three fields, and a set with more than `resourcesMax` is refused. */
const responseFieldsMax = 4 * resourcesMax;

/**
 * Reads a response. Its resources stay bytes, in place. Undefined for bytes that are not a
 * response, and for more fields than a set with the maximum number of resources has.
 */
export function decodeDiscoveryResponse(bytes: Uint8Array): DiscoveredSet | undefined {
  try {
    const reader = new FieldReader(bytes, responseFieldsMax);
    return readResponse(reader, Math.min(2 * resourcesMax, leanPartsMax(bytes.length)));
  } catch {
    return undefined;
  }
}

function readResponse(reader: FieldReader, partsMax: number): DiscoveredSet {
  const typeUrl = new LastPart();
  const version = new LastPart();
  const nonce = new LastPart();
  const resources: DiscoveredResource[] = [];
  while (reader.next()) {
    if (reader.tag === responseTags.resources) {
      if (resources.length >= partsMax) throw new TooManyFieldsError();
      resources.push(readResource(reader));
    } else if (reader.tag === responseTags.typeUrl) typeUrl.pass(reader);
    else if (reader.tag === responseTags.versionInfo) version.pass(reader);
    else if (reader.tag === responseTags.nonce) nonce.pass(reader);
    else reader.skip();
  }
  return {
    typeUrl: typeUrl.text(reader),
    version: version.text(reader),
    nonce: nonce.text(reader),
    resources,
  };
}

/** Source: google.protobuf.Any. */
function readResource(reader: FieldReader): DiscoveredResource {
  const typeUrl = new LastPart();
  const value = new LastPart();
  passTwoParts(reader, typeUrl, value);
  return { typeUrl: typeUrl.text(reader), value: value.bytes(reader) };
}
