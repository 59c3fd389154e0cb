import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { flag } from "../text/form.js";
import { field, object } from "../text/object.js";

/** `tellRule`: where refusals name what refused. */
export const disclosure = object(
  {
    title: "a tellRule",
    docs: "Where refusals name what refused them, in the policy's words and no caller's.",
  },
  {
    header: field(
      flag,
      "In the response header `x-headgate-rule`. Usually not: whoever is refused would learn " +
        "which rule it has to get around.",
      { default: defaultDisclosure.header },
    ),
    metadata: field(
      flag,
      "In Envoy's dynamic metadata, as `rule` and `limit`, for its access log and later filters: " +
        "no caller sees it, so it is usually there.",
      { default: defaultDisclosure.metadata },
    ),
    log: field(
      flag,
      "In log lines of Headgate's own: a sample, of one a second and rule at most.",
      { default: defaultDisclosure.log },
    ),
  },
);
