import { describe, expect, it } from "vitest";
import { parseImageName } from "../../../../src/generate/base/generate-options.js";
import { controllerConfig } from "../../../../src/generate/gateway/controller-config.js";
import { plain, testContext } from "../../../support/envoy-parts.js";

const digest = `sha256:${"0a".repeat(32)}`;

describe("controllerConfig()", () => {
  // The flag was taken, and the pods that Envoy Gateway starts had another image all the same.
  it.each(["registry.internal/headgate:1.2.3", `headgate@${digest}`, `headgate:1@${digest}`])(
    "starts the image that is named: %s",
    (text) => {
      const { context } = testContext({ services: [] });
      const image = parseImageName(text);
      if (image === undefined) throw new Error("no image");
      const options = { ...context.options, image };
      const made = controllerConfig({ ...context, options }, { isLimiting: true });
      expect(JSON.stringify(plain(made))).toContain(`image: ${text}\\n`);
    },
  );
});
