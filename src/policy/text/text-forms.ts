import { type Form, text } from "./form.js";
import { labelPattern, podLabelsMax } from "./service-texts.js";

/** A file as the proxy sees it. */
export const file = text({ charsMax: 1_024 }, /^\/.*[^/]$/);

/** A DNS label. */
export const label = text({ charsMax: 63 }, labelPattern);

/** Labels by which pods are found. */
export const podLabels: Form = {
  kind: "texts",
  key: /^[A-Za-z0-9.][A-Za-z0-9_./-]*$/,
  value: text({ charsMax: 63 }, /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/),
  max: podLabelsMax,
};
