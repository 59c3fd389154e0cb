import { WireType } from "@bufbuild/protobuf/wire";
import { FieldReader, fieldTag } from "../codec/field-reader.js";

/** The identity that an Envoy states. Untrusted: it must not reach labels or logs. */
export interface NodeIdentity {
  /** Its name, unique in the fleet. Empty if it has none. */
  readonly id: string;
  /** The group that it states. */
  readonly cluster: string;
  /** The program: `envoy`. */
  readonly agent: string;
  /** For example `1.40.0`, or another text of the program. Empty if not stated. */
  readonly version: string;
}

/** Maximum length of a node id, in characters. Other texts are truncated to as many bytes. */
export const nodeIdCharsMax = 256;

/** Maximum number of fields of a node and of its parts. Envoy has one for each extension. */
const nodeFieldsMax = 8_192;

/** The Envoy release line that this port was built for. */
const envoyLine = /^1\.40(?:\.|$)/;

const { Varint, LengthDelimited } = WireType;

/** Source: envoy.config.core.v3.Node. */
const nodeTags = {
  id: fieldTag(1, LengthDelimited),
  cluster: fieldTag(2, LengthDelimited),
  agent: fieldTag(6, LengthDelimited),
  version: fieldTag(7, LengthDelimited),
  build: fieldTag(8, LengthDelimited),
} as const;

/** Source: envoy.config.core.v3.BuildVersion and envoy.type.v3.SemanticVersion. */
const buildVersionTag = fieldTag(1, LengthDelimited);
const versionTags: readonly number[] = [1, 2, 3].map((field) => fieldTag(field, Varint));

/**
 * Reads the relevant parts of a node from the reader's current field, and skips the rest, such as
 * 60 KB of extensions.
 *
 * @throws Error for bytes that are not such a message, or have more than `nodeFieldsMax` fields
 */
export function readNodeIdentity(outer: FieldReader): NodeIdentity {
  const found = { id: "", cluster: "", agent: "", version: "" };
  const reader = new FieldReader(outer.part(), nodeFieldsMax);
  while (reader.next()) {
    if (reader.tag === nodeTags.id) found.id = reader.text();
    else if (reader.tag === nodeTags.cluster) found.cluster = reader.text(nodeIdCharsMax);
    else if (reader.tag === nodeTags.agent) found.agent = reader.text(nodeIdCharsMax);
    else if (reader.tag === nodeTags.version) found.version = reader.text(nodeIdCharsMax);
    else if (reader.tag === nodeTags.build) found.version = readBuildVersion(reader);
    else reader.skip();
  }
  // An id that is too long is rejected, not truncated.
  return found;
}

function readBuildVersion(reader: FieldReader): string {
  let version = "";
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === buildVersionTag) version = readSemanticVersion(reader);
    else reader.skip();
  }
  reader.leave(outerEnd);
  return version;
}

function readSemanticVersion(reader: FieldReader): string {
  const numbers = versionTags.map(() => 0);
  const outerEnd = reader.enter();
  while (reader.next()) {
    const place = versionTags.indexOf(reader.tag);
    if (place === -1) reader.skip();
    else numbers[place] = reader.whole();
  }
  reader.leave(outerEnd);
  return numbers.join(".");
}

/** Whether it is an Envoy of the release line that this port was built for. */
export function isKnownVersion({ agent, version }: NodeIdentity): boolean {
  return agent === "envoy" && envoyLine.test(version);
}
