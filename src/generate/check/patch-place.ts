import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { EnvoyApi } from "./envoy-api.js";

/** The type of a value at a place of a resource. */
type ResourcePlace =
  /** A message, or a list of it. */
  | { readonly kind: "message"; readonly message: string }
  /** A number, a text, or a list or map of them. */
  | { readonly kind: "plain" }
  /** There is no such place, or an `Any` hides its type. */
  | { readonly kind: "unknown" };

/** Network filter that patches modify. The path alone does not reveal the type of other filters. */
const networkFilter = "envoy.config.listener.v3.Filter";
const connectionFilter =
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/** A place within a resource, as a patch names it. */
interface PatchPath {
  /** Full name of the resource's message. */
  readonly resource: string;
  /** Source: RFC 9535. Empty if there is none. */
  readonly jsonPath: string;
  /** Path below what the JSON path finds. Source: RFC 6901. */
  readonly pointer: string;
}

/**
 * Returns the type of the value at a place of an Envoy resource.
 *
 * Example: `/filter_chains/0/filters/0` of `envoy.config.listener.v3.Listener` is a message,
 * `envoy.config.listener.v3.Filter`.
 */
export function findPatchPlace(
  { resource, jsonPath, pointer }: PatchPath,
  api: EnvoyApi,
): ResourcePlace {
  let desc = api.message(resource);
  let isKeyNext = false;
  let isPlain = false;
  for (const { name, isAnywhere } of [...namesOfPath(jsonPath), ...namesOfPointer(pointer)]) {
    if (isKeyNext) {
      isKeyNext = false;
      continue;
    }
    const direct = desc === undefined ? undefined : fieldOf(desc, name);
    const field = direct ?? (isAnywhere ? fieldBelow(desc, name, api) : undefined);
    if (field === undefined || isPlain) return { kind: "unknown" };
    isKeyNext = field.fieldKind === "map";
    isPlain = field.message === undefined;
    desc = contentOf(field, api);
  }
  if (isPlain) return { kind: "plain" };
  if (desc === undefined || isKeyNext) return { kind: "unknown" };
  return { kind: "message", message: desc.typeName };
}

function fieldOf(desc: DescMessage, name: string): DescField | undefined {
  return desc.fields.find((one) => one.name === name || one.jsonName === name);
}

/** Maximum number of messages that are searched for a name at any depth. */
const searchedMax = 500;

/** Returns the field with that name that is the fewest levels below a message. */
function fieldBelow(
  desc: DescMessage | undefined,
  name: string,
  api: EnvoyApi,
): DescField | undefined {
  const waiting = new Set(desc === undefined ? [] : [desc]);
  for (const next of waiting) {
    const found = fieldOf(next, name);
    if (found !== undefined) return found;
    for (const field of next.fields) {
      const content = contentOf(field, api);
      if (content !== undefined && waiting.size < searchedMax) waiting.add(content);
    }
  }
  return undefined;
}

function contentOf(field: DescField, api: EnvoyApi): DescMessage | undefined {
  const isHidden = field.message?.typeName === "google.protobuf.Any";
  if (isHidden && field.parent.typeName === networkFilter) return api.message(connectionFilter);
  return field.message;
}

interface PathName {
  readonly name: string;
  /** Whether it may be at any depth below. */
  readonly isAnywhere: boolean;
}

/** Returns the names in a JSON path, without indexes and filters. */
function namesOfPath(path: string): readonly PathName[] {
  const plain = path.replace(/^\$/, "").replaceAll(/\[\?.*?\)\]/g, "");
  const found = plain.matchAll(/(\.{0,2})(?:\[\s*(?:"([^"]*)"|'([^']*)'|\d+|\*)\s*\]|([^.[\]]+))/g);
  return Array.from(found, ([, dots, double, single, bare]) => {
    return { name: double ?? single ?? bare ?? "", isAnywhere: dots === ".." };
  }).filter(({ name }) => name !== "" && name !== "*");
}

/** Returns the names in a JSON pointer, without indexes. */
function namesOfPointer(pointer: string): readonly PathName[] {
  return pointer
    .split("/")
    .filter((part) => part !== "" && part !== "-" && !/^\d+$/.test(part))
    .map((part) => {
      return { name: part.replaceAll("~1", "/").replaceAll("~0", "~"), isAnywhere: false };
    });
}
