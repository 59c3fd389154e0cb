import type { PlainValue } from "../generate/base/plain-tree.js";
import { isPlainMap } from "../generate/base/plain-tree.js";
import type { DoctorInput } from "./diagnostic.js";
import { isTrueAt, mapsAt, valueAt } from "./json-access.js";

/** Whether a runtime guard is on: as /runtime says, or as a static layer sets it. */
export function isGuardSet({ runtime, dump }: DoctorInput, guard: string): boolean {
  const final = valueAt(runtime, "entries", guard, "final_value");
  if (final !== undefined) return final === "true" || final === true;
  const layers = mapsAt(dump.bootstrap, "layered_runtime", "layers");
  return layers.some((layer) => isSetIn(valueAt(layer, "static_layer"), guard));
}

/** A layer has its keys whole, or nested at their dots. */
function isSetIn(layer: PlainValue | undefined, guard: string): boolean {
  if (!isPlainMap(layer)) return false;
  if (isTrueAt(layer, guard)) return true;
  return isTrueAt(layer, ...guard.split("."));
}
