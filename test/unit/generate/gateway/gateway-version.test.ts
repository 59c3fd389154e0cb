import { describe, expect, it } from "vitest";
import { versionRanges } from "../../../../src/generate/base/generate-options.js";
import { gatewayFeatures } from "../../../../src/generate/gateway/gateway-version.js";
import { minorsHaving, publishedMinors } from "../../../support/published-fields.js";

const { min, max } = versionRanges.gatewayVersion;
const minors = Array.from({ length: max.minor - min.minor + 1 }, (_, i) => min.minor + i);

describe("gatewayFeatures", () => {
  it("is held against definitions of every version that is generated for", () => {
    expect(publishedMinors("gateway")).toEqual(minors);
  });

  it.each(Object.entries(gatewayFeatures))("%s: since the version that first has it", (_, row) => {
    expect(minorsHaving("gateway", row)).toEqual(minors.filter((minor) => minor >= row.since));
  });
});
