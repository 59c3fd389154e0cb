import { WireType } from "@bufbuild/protobuf/wire";
import { FieldReader, fieldTag } from "../codec/field-reader.js";

/** Who an Envoy says it is. All of it was made elsewhere: it reaches no label and no log. */
export interface NodeIdentity {
  /** Its own name, unique in the fleet; empty where it has none. */
  readonly id: string;
  /** The group that it says it belongs to. */
  readonly cluster: string;
  /** The program: `envoy`. */
  readonly agent: string;
  /** As `1.40.0`, or a text of the program's own; empty where it says none. */
  readonly version: string;
}

/** The longest name of a node, in characters; other texts are cut to as many bytes. */
export const nodeIdCharsMax = 256;

/** Fields of a node, with those of its parts that are read. Envoy has one for each extension. */
const nodeFieldsMax = 8_192;

/** The line of Envoy whose behaviour this port was made for. */
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
 * Reads what is needed of a node from a field whose value it is, where the reader stands; what else
 * there is of it, 60 KB of extensions, is passed over.
 *
 * @throws Error for bytes that are no such message, or have more than `nodeFieldsMax` fields
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
  // An id that is too long is refused, and so is not cut.
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

/** Whether it is an Envoy of the line that this port was made for. */
export function isKnownVersion({ agent, version }: NodeIdentity): boolean {
  return agent === "envoy" && envoyLine.test(version);
}
