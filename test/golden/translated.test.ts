import { describe, expect, it } from "vitest";
import {
  recordedTranslation,
  recordTranslation,
  translatedCases,
  translationDigest,
} from "../support/translated.js";
import { meshCases, meshDigest, recordedMesh, recordMesh } from "../support/translated-istio.js";

/**
 * What Envoy Gateway's and Istio's own translators make of golden cases: recorded where they are
 * updated (UPDATE_GOLDEN=1, with `egctl` and `istio-translate` on PATH).
 */
describe("recorded translations", () => {
  it.each(translatedCases().map((given) => [given.name, given] as const))(
    "%s is made of the objects that are generated now",
    (_, given) => {
      if (process.env["UPDATE_GOLDEN"] === "1") recordTranslation(given);
      expect(recordedTranslation(given).madeOf).toBe(translationDigest(given));
    },
  );

  it.each(meshCases().map((given) => [given.name, given] as const))(
    "%s is made of the objects that are generated now",
    (_, given) => {
      if (process.env["UPDATE_GOLDEN"] === "1") recordMesh(given);
      expect(recordedMesh(given).madeOf).toBe(meshDigest(given));
    },
  );
});
