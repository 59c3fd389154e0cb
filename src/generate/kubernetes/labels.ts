import type { Tree, TreeMap } from "../base/document.js";
import type { ValueSource } from "./value-source.js";

/** Labels that select every object of Headgate, including its pods. */
export function labelsOf(source: ValueSource): TreeMap {
  return {
    "app.kubernetes.io/name": source.text("name"),
    "app.kubernetes.io/component": "rate-limit",
  };
}

/** Returns an object's metadata. @param around its name with `@` for the installation's */
export function objectMetadata(source: ValueSource, around = "@"): TreeMap {
  const name: Tree = source.text("name", around);
  return { name, namespace: source.namespace, labels: labelsOf(source) };
}
