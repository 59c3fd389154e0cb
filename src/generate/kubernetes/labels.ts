import type { Tree, TreeMap } from "../base/document.js";
import type { ValueSource } from "./value-source.js";

/** What every object of Headgate's is found by, its pods too. */
export function labelsOf(source: ValueSource): TreeMap {
  return {
    "app.kubernetes.io/name": source.text("name"),
    "app.kubernetes.io/component": "rate-limit",
  };
}

/** The metadata of an object. @param around its name with `@` for the installation's */
export function objectMetadata(source: ValueSource, around = "@"): TreeMap {
  const name: Tree = source.text("name", around);
  return { name, namespace: source.namespace, labels: labelsOf(source) };
}
