import { hitsMax } from "../../core/limits/limit.js";
import { defaultOverrideMax, multiplierMax } from "../../core/limits/override.js";
import {
  any,
  type Form,
  flag,
  list,
  type MapForm,
  map,
  mapForm,
  row,
  text,
  whole,
  words,
} from "../text/form.js";
import {
  type Dialect,
  descriptorShapes,
  domainShapes,
  rateLimitShapes,
  replacesShape,
} from "../text/shapes.js";
import { domainRule, keyRule, nameRule, valueRule } from "../text/text-rules.js";
import { algorithmKinds } from "./algorithm.js";
import { units } from "./rate-limit.js";
import { replacesMax } from "./replaces.js";
import { disclosureForm } from "./rule-disclosure.js";
import { limitsPerDescriptorMax } from "./rule-effect.js";
import { bodyStyles, failureModes, headerStyles } from "./rule-settings.js";

const replaces = mapForm(
  {
    shape: replacesShape,
    docs: "A limit that is not asked where this one is met.",
    required: ["name"],
  },
  { name: row(text(nameRule), "The `name` of the limit that is replaced.") },
);

const onStoreFailure = row(
  words(...failureModes),
  "What answers while the store is away: a local share, allow, deny, or a gRPC error.",
  "local",
);

const overrideMax = row(
  whole({ min: 1, max: multiplierMax }),
  "How many times as much an operator's override may give, in hits and burst.",
  defaultOverrideMax,
);

const tellRule = row(
  map(disclosureForm),
  "Where refusals name their rule. What is left out is as the domain says, or as usual.",
);

/** Any period, as limits have it. */
export const periodForm = text(
  { charsMax: 64 },
  /^(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?$/,
);

const unit: Form = { kind: "words", words: units, ignoreCase: true };

/** The names of a limit, in either dialect. */
function limitRows(dialect: Dialect) {
  return {
    unit: row(
      // An empty one beside `unlimited` is nothing there.
      dialect === "headgate" ? unit : any(unit, words("")),
      "The period that `requests_per_unit` is for: second, minute, hour, day, week, month or year.",
    ),
    requests_per_unit: row(
      whole({ min: 0, max: hitsMax }),
      "How many hits a period lets pass; 0 blocks everything.",
    ),
    unlimited: row(flagOf(dialect), "No limit: what meets it passes, and is counted.", false),
    name: row(
      dialect === "headgate" ? text(nameRule) : any(text(nameRule), words("")),
      "Names the limit in headers and metrics; keeps its state through changes of the period.",
    ),
    replaces: row(
      list(map(replaces), replacesMax),
      "Limits that are not asked where this one is met.",
    ),
    burst: row(
      whole({ min: 1, max: hitsMax }),
      "How many hits may come at once. Usually as many as `requests_per_unit`.",
    ),
    period: row(periodForm, "Any period instead of `unit`: 10s, 5m, 1h30m, 1d, 2w."),
    charge: row(
      words("settle"),
      "`settle`: the cost is known only after the response, and is always taken.",
    ),
    peek: row(
      words("debt", "exhausted"),
      "When a question of no hits is refused: in debt, or as soon as nothing remains.",
      "debt",
    ),
    overrideMax,
    algorithm: row(
      words(...algorithmKinds),
      "`gcra` lets hits pass evenly; `fixed_window` counts from the period's beginning.",
      "gcra",
    ),
    time_zone: row(
      text({ charsMax: 64 }, /^[A-Za-z][A-Za-z0-9_+/-]*$/),
      "Where a calendar's day begins, such as Europe/Stockholm; implies `fixed_window`.",
    ),
  };
}

function flagOf(dialect: Dialect): Form {
  return dialect === "headgate" ? flag : { kind: "ratelimitBoolean" };
}

const limitDocs = "How many hits pass in which time.";

/** A limit, by dialect. */
const rateLimitForms: Readonly<Record<Dialect, MapForm>> = {
  ratelimit: mapForm({ shape: rateLimitShapes.ratelimit, docs: limitDocs }, limitRows("ratelimit")),
  headgate: mapForm(
    {
      shape: rateLimitShapes.headgate,
      docs: limitDocs,
      needed: [
        ["unit", "period", "unlimited"],
        ["requests_per_unit", "unlimited"],
      ],
      exclusive: [
        ["unit", "period"],
        ["period", "time_zone"],
        ["burst", "time_zone"],
      ],
    },
    limitRows("headgate"),
  ),
};

/** The names of a descriptor, in either dialect. */
function descriptorRows(dialect: Dialect) {
  const old = flagOf(dialect);
  const limit = map(rateLimitForms[dialect]);
  return {
    key: row(text(keyRule), "The key of an entry; a `*` in it stands for any text."),
    value: row(
      any(text(valueRule), words("")),
      "The entry's value, in which a `*` stands for any text. Left out: any value, each by itself.",
    ),
    rate_limit: row(limit, "The limit of what ends here."),
    rate_limits: row(
      list(limit, limitsPerDescriptorMax, 1),
      "Several limits of what ends here: all of them hold.",
    ),
    on_store_failure: onStoreFailure,
    descriptors: row(
      list({ kind: "map", map: () => descriptorForms[dialect] }),
      "What the next entry may be.",
    ),
    shadow_mode: row(old, "Decides and counts, and denies nobody.", false),
    quota_mode: row(old, "Denies only together with all other limits of quota mode.", false),
    detailed_metric: row(old, "Counts each value by itself.", false),
    value_to_metric: row(old, "Puts the value of this entry into the metric's name.", false),
    share_threshold: row(old, "Values that a pattern matches share one limit.", false),
    metadata: row({ kind: "json" }, "Given back with the decision, as dynamic metadata."),
    headers: row(words(...headerStyles), "Which headers tell the caller of its limit."),
    body: row(words(...bodyStyles), "What a refusal holds."),
    tellRule,
  };
}

const descriptorDocs = "One entry of what Envoy asks about, and what lies below it.";

const descriptorForms: Readonly<Record<Dialect, MapForm>> = {
  ratelimit: mapForm(
    { shape: descriptorShapes.ratelimit, docs: descriptorDocs, required: ["key"] },
    descriptorRows("ratelimit"),
  ),
  headgate: mapForm(
    {
      shape: descriptorShapes.headgate,
      docs: descriptorDocs,
      required: ["key"],
      exclusive: [["rate_limit", "rate_limits"]],
    },
    descriptorRows("headgate"),
  ),
};

function domainRows(dialect: Dialect) {
  return {
    domain: row(text(domainRule), "The domain that Envoy's filter names."),
    on_store_failure: onStoreFailure,
    overrideMax,
    tellRule,
    descriptors: row(
      list(map(descriptorForms[dialect])),
      "What may be asked about, and its limits.",
    ),
  };
}

/** A domain: an item of `rateLimits`, or a whole file of envoyproxy/ratelimit. */
export const domainForms: Readonly<Record<Dialect, MapForm>> = {
  ratelimit: mapForm(
    {
      shape: domainShapes.ratelimit,
      docs: "Limits, in the language of envoyproxy/ratelimit.",
      required: ["domain"],
    },
    domainRows("ratelimit"),
  ),
  headgate: mapForm(
    { shape: domainShapes.headgate, docs: "A domain and its limits.", required: ["domain"] },
    domainRows("headgate"),
  ),
};
