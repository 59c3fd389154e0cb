import { describe, expect, it } from "vitest";
import {
  recordedTranslation,
  recordTranslation,
  translatedCases,
  translationDigest,
} from "../support/translated.js";

/**
 * What Envoy Gateway's own translator makes of golden cases: recorded where they are updated
 * (UPDATE_GOLDEN=1, with `egctl` on PATH).
 */
describe("recorded translations", () => {
  it.each(translatedCases().map((given) => [given.name, given] as const))(
    "%s is made of the objects that are generated now",
    (_, given) => {
      if (process.env["UPDATE_GOLDEN"] === "1") recordTranslation(given);
      expect(recordedTranslation(given).madeOf).toBe(translationDigest(given));
    },
  );
});
