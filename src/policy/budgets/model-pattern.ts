import { modelCharsMax } from "../../core/usage/usage-fields.js";
import { ruledText } from "../text/form.js";

const modelChars = /^[!-~]+$/;

/** A model's name; `*` matches any text. */
export const modelPattern = ruledText(
  {
    charsMax: modelCharsMax,
    forbidden: /[^!-~]/,
    expected: "a model's name such as gpt-4o, or a pattern such as gpt-*",
  },
  modelChars,
);

/** A model's name without a pattern. */
export const modelName = ruledText(
  {
    charsMax: modelCharsMax,
    forbidden: /[^!-~]|\*/,
    expected: "a model's name, such as gpt-4o",
  },
  modelChars,
);
