import { WireType } from "@bufbuild/protobuf/wire";
import { FieldReader, fieldTag, LastPart } from "../codec/field-reader.js";
import { type NodeIdentity, readNodeIdentity } from "../nodes/node-identity.js";

/** The parts that are read of a request. Source: envoy.service.discovery.v3.DiscoveryRequest. */
export interface DiscoveryAsk {
  /** Envoy states it in the first message of a stream. */
  readonly node: NodeIdentity | undefined;
  readonly typeUrl: string;
  readonly versionInfo: string;
  /** The first `resourceNamesMax` of them. */
  readonly resourceNames: readonly string[];
  readonly responseNonce: string;
  /** Why the response with that nonce is rejected. Undefined if it is not. */
  readonly refusal: string | undefined;
}

/** Maximum number of names read of one request. An Envoy has only a few layers. */
export const resourceNamesMax = 1_024;

/** Maximum bytes read of a text: names of types and layers are shorter, and some are kept. */
export const askTextBytesMax = 256;

const { LengthDelimited } = WireType;

/** Source: DiscoveryRequest. */
const requestTags = {
  versionInfo: fieldTag(1, LengthDelimited),
  node: fieldTag(2, LengthDelimited),
  resourceNames: fieldTag(3, LengthDelimited),
  typeUrl: fieldTag(4, LengthDelimited),
  responseNonce: fieldTag(5, LengthDelimited),
  errorDetail: fieldTag(6, LengthDelimited),
} as const;

/** Source: google.rpc.Status. */
const statusMessageTag = fieldTag(2, LengthDelimited);

/**
 * Reads a request by hand. The node in it has 500 extensions and 61 KB, of which nothing is needed,
 * and the general decoder would turn four megabytes of empty ones into gigabytes of messages.
 *
 * @throws Error for bytes that are not such a message
 */
export function decodeDiscoveryAsk(bytes: Uint8Array): DiscoveryAsk {
  const reader = new FieldReader(bytes);
  let node: NodeIdentity | undefined;
  const typeUrl = new LastPart();
  const versionInfo = new LastPart();
  const responseNonce = new LastPart();
  let refusal: string | undefined;
  const resourceNames: string[] = [];
  while (reader.next()) {
    const { tag } = reader;
    if (tag === requestTags.node && node === undefined) node = readNodeIdentity(reader);
    else if (tag === requestTags.typeUrl) typeUrl.pass(reader);
    else if (tag === requestTags.versionInfo) versionInfo.pass(reader);
    else if (tag === requestTags.responseNonce) responseNonce.pass(reader);
    else if (tag === requestTags.errorDetail) refusal = readStatusMessage(reader);
    else if (tag === requestTags.resourceNames && resourceNames.length < resourceNamesMax) {
      resourceNames.push(reader.text(askTextBytesMax));
    } else reader.skip();
  }
  return {
    node,
    typeUrl: typeUrl.text(reader, askTextBytesMax),
    versionInfo: versionInfo.text(reader, askTextBytesMax),
    resourceNames,
    responseNonce: responseNonce.text(reader, askTextBytesMax),
    refusal,
  };
}

function readStatusMessage(reader: FieldReader): string {
  const message = new LastPart();
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === statusMessageTag) message.pass(reader);
    else reader.skip();
  }
  reader.leave(outerEnd);
  return message.text(reader, askTextBytesMax);
}
