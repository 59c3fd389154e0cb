import { describe, expect, it } from "vitest";
import { versionRanges } from "../../../../../src/generate/base/generate-options.js";
import {
  listenerOptionRows,
  type OptionSupport,
  serviceOptionRows,
} from "../../../../../src/generate/envoy/base/option-support.js";
import { tcpOptionRows } from "../../../../../src/generate/envoy/base/tcp-option-support.js";
import {
  minorsHaving,
  type Product,
  publishedMinors,
} from "../../../../support/published-fields.js";

/** Objects that hold whatever Envoy takes. */
const patches = ["EnvoyFilter", "EnvoyPatchPolicy", "ConfigMap of the bootstrap"];

const rows = [
  ...Object.entries(serviceOptionRows),
  ...Object.entries(listenerOptionRows),
  ...Object.entries(tcpOptionRows),
].flatMap(
  ([option, { istio, gateway }]) =>
    [
      { product: "istio", option, support: istio },
      { product: "gateway", option, support: gateway },
    ] as const,
);

/** What another object than a patch says an option with. */
function worded(support: OptionSupport) {
  return "by" in support && !patches.includes(support.by) ? [support] : [];
}

describe("the options by target", () => {
  it.each<Product>(["istio", "gateway"])("begin with the oldest %s", (product) => {
    const { min } = versionRanges[`${product}Version`];
    expect(publishedMinors(product)[0]).toBe(min.minor);
  });

  it.each(
    rows.flatMap(({ product, option, support }) =>
      worded(support).map((one) => [product, option, one] as const),
    ),
  )("%s: %s since the version that first has it", (product, _, { by, since = 0, field }) => {
    const [kind = ""] = by.split(",");
    if (field === undefined) throw new Error(`nothing says which field of ${kind} it is`);
    expect(minorsHaving(product, { kind, field })).toEqual(
      publishedMinors(product).filter((minor) => minor >= since),
    );
  });
});
