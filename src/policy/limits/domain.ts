import { asWritten, list, map, ruledText } from "../text/form.js";
import { field, object } from "../text/object.js";
import type { Dialect } from "../text/shapes.js";
import { domainRule } from "../text/text-rules.js";
import { descriptorForms } from "./descriptors.js";
import { overrideMaxField } from "./rate-limit.js";
import { disclosureField, storeFailureField } from "./rule-settings.js";

function formOf(dialect: Dialect) {
  return object(
    {
      blank: ["descriptors"],
      ...(dialect === "headgate"
        ? { title: "an item of rateLimits", docs: "A domain and its limits." }
        : {
            title: "a ratelimit file",
            docs: "Limits, in the language of envoyproxy/ratelimit.",
            own: ["on_store_failure", "overrideMax", "tellRule"],
          }),
    },
    {
      domain: field(ruledText(domainRule), "The domain that Envoy's rate limit filter sends.", {
        needs: domainRule.expected,
      }),
      on_store_failure: storeFailureField,
      overrideMax: overrideMaxField,
      tellRule: disclosureField,
      descriptors: field(
        asWritten(list(map(descriptorForms[dialect]))),
        "The descriptors of the domain, and their limits.",
      ),
    },
  );
}

/** The form of a domain: an item of `rateLimits`, or a whole file of envoyproxy/ratelimit. */
export const domainForms = { ratelimit: formOf("ratelimit"), headgate: formOf("headgate") };
