import { WireType } from "@bufbuild/protobuf/wire";
import { assert } from "../../core/base/errors.js";
import { runtimeLayerName } from "../../core/feedback/runtime-keys.js";
import { BackwardWriter } from "../codec/backward-writer.js";
import { fieldTag } from "../codec/field-reader.js";
import {
  encodedTextsMax,
  structFieldLengthMax,
  writeDuration,
  writeStructFields,
} from "../codec/well-known-writer.js";
import { emptyLayer, type LayerValue, type NodeLayer } from "../nodes/layer-ledger.js";
import { type EncodedKeys, LayerValues } from "../nodes/layer-values.js";

/** The type of runtime layers, as discovery names it. */
export const runtimeTypeUrl = "type.googleapis.com/envoy.service.runtime.v3.Runtime";

const resourceTypeUrl = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/** The contents of a response with layers. */
export interface LayerAnswer {
  readonly nonce: string;
  /** Undefined: Headgate's layer was not requested. */
  readonly layer: NodeLayer | undefined;
  readonly ttlMs: number;
  /** Other requested layers. They are sent empty, so that no Envoy waits for them. */
  readonly emptyNames: readonly string[];
}

const { LengthDelimited } = WireType;

/** Source: envoy.service.discovery.v3.DiscoveryResponse. */
const answerTags = {
  version: fieldTag(1, LengthDelimited),
  resource: fieldTag(2, LengthDelimited),
  typeUrl: fieldTag(4, LengthDelimited),
  nonce: fieldTag(5, LengthDelimited),
} as const;

/** Source: envoy.service.discovery.v3.Resource. */
const resourceTags = {
  version: fieldTag(1, LengthDelimited),
  resource: fieldTag(2, LengthDelimited),
  name: fieldTag(3, LengthDelimited),
  ttl: fieldTag(6, LengthDelimited),
} as const;

/** Source: google.protobuf.Any and envoy.service.runtime.v3.Runtime. */
const anyTags = { typeUrl: fieldTag(1, LengthDelimited), value: fieldTag(2, LengthDelimited) };
const runtimeTags = { name: fieldTag(1, LengthDelimited), layer: fieldTag(2, LengthDelimited) };

/** Shared by all responses: a finished one does not change when the next one is started. */
const writer = new BackwardWriter();

/**
 * Encodes a response with the whole layer of `runtimeLayerName`, which expires if it is not
 * renewed. By hand: the library creates two messages for each key, and a layer has forty keys, for
 * each of a thousand Envoys each second. A test of random layers compares it with the library.
 *
 * Source: envoy.service.discovery.v3.DiscoveryResponse and Resource; envoy.service.runtime.v3.
 */
export function encodeLayers({ nonce, layer, ttlMs, emptyNames }: LayerAnswer): Uint8Array {
  const version = layer?.version ?? emptyLayer.version;
  const layers = [...(layer === undefined ? [] : [layer]), ...emptyNames.map(() => emptyLayer)];
  const layersMax = layers.reduce((sum, one) => sum + layerLengthMax(one), 0);
  const namesMax = encodedTextsMax(emptyNames.join(""), nonce);
  writer.begin(encodedTextsMax(runtimeTypeUrl, version) + namesMax + layersMax);
  writer.text(answerTags.nonce, nonce);
  writer.text(answerTags.typeUrl, runtimeTypeUrl);
  for (const name of emptyNames.toReversed()) {
    const end = writer.at;
    writeRuntime(name, emptyLayer);
    writer.message(answerTags.resource, end);
  }
  if (layer !== undefined) writeResource(layer, ttlMs);
  writer.text(answerTags.version, version);
  return writer.finish();
}

/** Encodes an empty response of a type. Source: envoy.service.discovery.v3.DiscoveryResponse. */
export function encodeEmptyAnswer(typeUrl: string, nonce: string): Uint8Array {
  const { version } = emptyLayer;
  writer.begin(encodedTextsMax(typeUrl, version) + encodedTextsMax(nonce));
  writer.text(answerTags.nonce, nonce);
  writer.text(answerTags.typeUrl, typeUrl);
  writer.text(answerTags.version, version);
  return writer.finish();
}

/** Returns the maximum size of one layer as a resource, without names of other layers. */
function layerLengthMax({ version, values }: NodeLayer): number {
  const around = encodedTextsMax(resourceTypeUrl, version) + encodedTextsMax(runtimeTypeUrl);
  let length = around + 2 * encodedTextsMax(runtimeLayerName);
  if (values instanceof LayerValues) {
    return length + values.known.encoded(() => encodeValues(values)).bytes.length;
  }
  for (const [key, value] of values) length += structFieldLengthMax(key, value);
  return length;
}

/** Writes an Any with a Runtime. */
function writeRuntime(name: string, { values }: NodeLayer): void {
  const end = writer.at;
  if (values instanceof LayerValues) writeValues(values);
  else writeStructFields(writer, [...values].reverse());
  writer.message(runtimeTags.layer, end);
  writer.text(runtimeTags.name, name);
  endAny(runtimeTypeUrl, end);
}

/** Writes the keys, which were encoded once for all layers with them, and this one's values. */
function writeValues(values: LayerValues<LayerValue>): void {
  const { known, list } = values;
  const { bytes, places, areFlags } = known.encoded(() => encodeValues(values));
  writer.bytes(bytes);
  for (let i = 0; i < list.length; i += 1) {
    const value = list[i];
    const place = places[i] ?? 0;
    if (typeof value === "number") writer.doubleAt(place, value);
    else writer.byteAt(place, value === true ? 1 : 0);
    assert((typeof value === "boolean") === areFlags[i], "a key has values of one kind");
  }
}

/** Encodes fields of a struct, each of which ends with its value. */
function encodeValues(values: LayerValues<LayerValue>): EncodedKeys {
  const places: number[] = [];
  const parts: Uint8Array[] = [];
  const own = new BackwardWriter();
  let length = 0;
  for (const [key, value] of values) {
    own.begin(structFieldLengthMax(key, value));
    writeStructFields(own, [[key, value]]);
    const part = own.finish();
    parts.push(part);
    length += part.length;
    places.push(length - (typeof value === "boolean" ? 1 : 8));
  }
  const areFlags = values.list.map((value) => typeof value === "boolean");
  return { bytes: Buffer.concat(parts), places, areFlags };
}

/** Writes a field with an Any with a Resource with an Any with a Runtime. */
function writeResource(layer: NodeLayer, ttlMs: number): void {
  const end = writer.at;
  writeDuration(writer, ttlMs);
  writer.message(resourceTags.ttl, end);
  writer.text(resourceTags.name, runtimeLayerName);
  const runtimeEnd = writer.at;
  writeRuntime(runtimeLayerName, layer);
  writer.message(resourceTags.resource, runtimeEnd);
  writer.text(resourceTags.version, layer.version);
  endAny(resourceTypeUrl, end);
  writer.message(answerTags.resource, end);
}

/** Completes an Any with what was written since the writer was at `end`. */
function endAny(typeUrl: string, end: number): void {
  writer.message(anyTags.value, end);
  writer.text(anyTags.typeUrl, typeUrl);
}
