import { defaultOverrideMax, multiplierMax } from "../../core/limits/override.js";
import { conditionCharsMax } from "../cel/cel.js";
import { periodForm } from "../limits/limit-forms.js";
import { failureModes } from "../limits/rule-settings.js";
import { textMatchesMax } from "../services/descriptor-parts.js";
import { describedHeader, textMatchForm } from "../services/service-forms.js";
import { servicesMax } from "../services/service-list.js";
import {
  any,
  duration,
  type Form,
  flag,
  list,
  map,
  mapForm,
  number,
  row,
  text,
  whole,
  words,
  written,
} from "../text/form.js";
import { headerPattern, labelPattern } from "../text/service-texts.js";
import { domainRule, keyRule, valueRule } from "../text/text-rules.js";
import {
  quotaClassesMax,
  quotaPartSources,
  quotaPartsMax,
  quotaPartWords,
  quotaWeightBounds,
} from "./quota-parts.js";
import {
  callsShareBounds,
  defaultQuota,
  expiryWords,
  grpcStatusBounds,
  quotaBlankets,
  quotaBodyCharsMax,
  quotaExpiryBounds,
  quotaHeadersMax,
  quotaHitsBounds,
  quotaRetryBounds,
  quotaStatusBounds,
  quotaTtlBounds,
} from "./quota-settings.js";
import {
  quotaClassesShape,
  quotaDenialShape,
  quotaExpiryShape,
  quotaPartShape,
  quotaRateShape,
  quotaShape,
} from "./quota-shapes.js";

const label = text({ charsMax: 63 }, labelPattern);

const part = mapForm(
  {
    shape: quotaPartShape,
    docs: "One entry of a bucket, and what it is made from.",
    required: ["as"],
    needed: [[...quotaPartSources]],
    exclusive: [[...quotaPartSources], ["value", "default"]],
  },
  {
    header: row(describedHeader, "The value of a request header, `:path` and the like among them."),
    query: row(text(keyRule), "The value of a query parameter."),
    value: row(text(valueRule), "A fixed value."),
    as: row(text(keyRule), "The key that the entry has in `rateLimits`; not `quota` or `class`."),
    default: row(
      text(valueRule),
      "The value where a request does not say it. Left out: the quota leaves such requests alone.",
    ),
  },
);

const rate = mapForm(
  {
    shape: quotaRateShape,
    docs: "A limit of the domain, at the path of the quota's buckets.",
    required: ["hits", "period"],
  },
  {
    hits: row(whole(quotaHitsBounds), "How many hits a period lets pass, in the whole fleet."),
    period: row(periodForm, "Any period: 1s, 10s, 1m, 1h30m."),
    burst: row(whole(quotaHitsBounds), "How many may come at once. Usually as many as `hits`."),
    on_store_failure: row(
      words(...failureModes),
      "What holds while the store is away and leases are over. Left out: as the domain says.",
    ),
    overrideMax: row(
      whole({ min: 1, max: multiplierMax }),
      "How many times as much an operator's override may give, in hits and burst.",
      defaultOverrideMax,
    ),
    dryRun: row(flag, "Counts, and refuses nobody.", false),
  },
);

const weights: Form = {
  kind: "texts",
  key: /^[ -~]{1,128}$/,
  value: whole(quotaWeightBounds),
  max: quotaClassesMax,
};

const classes = mapForm(
  {
    shape: quotaClassesShape,
    docs: "Who gets more of a limit than others when not all can have what they want.",
    required: ["header", "weights"],
  },
  {
    header: row(describedHeader, "The header that tells a request's class."),
    weights: row(weights, "Weights by the header's value; a request with none of them weighs 1."),
  },
);

const expiry = mapForm(
  {
    shape: quotaExpiryShape,
    docs: "What an Envoy does with a bucket whose assignment is over when nobody tells it more.",
  },
  {
    fallback: row(
      words(...expiryWords),
      "`limit`: its part of the limit, divided by `proxies.expected`; or everything, or nothing.",
      "limit",
    ),
    for: row(
      duration(quotaExpiryBounds),
      "For how long, in whole seconds; then as before the first assignment.",
      written(defaultQuota.expirySeconds * 1_000),
    ),
  },
);

const headers: Form = {
  kind: "texts",
  key: headerPattern,
  value: text({ charsMax: 1_024 }),
  max: quotaHeadersMax,
};

const denial = mapForm(
  { shape: quotaDenialShape, docs: "What a caller gets whose request is over the quota." },
  {
    status: row(whole(quotaStatusBounds), "The HTTP status.", defaultQuota.status),
    retryAfter: row(
      duration(quotaRetryBounds),
      "When to come again, in whole seconds.",
      written(defaultQuota.retryAfterSeconds * 1_000),
    ),
    body: row(
      text({ charsMax: quotaBodyCharsMax }),
      "The body, and the message of a gRPC call's status. Left out: none.",
    ),
    headers: row(headers, "Further headers of the response."),
    grpcStatus: row(
      whole(grpcStatusBounds),
      "What a gRPC call gets: 8 is RESOURCE_EXHAUSTED.",
      defaultQuota.grpcStatus,
    ),
  },
);

/** An item of `quotas`. */
export const quotaForm = mapForm(
  {
    shape: quotaShape,
    docs: "Requests that Envoys let pass by themselves, by what Headgate assigns to them.",
    required: ["name", "domain", "bucket"],
  },
  {
    name: row(label, "Names it in buckets, metrics and generated configuration."),
    domain: row(text(domainRule), "A domain of `rateLimits`."),
    services: row(
      list(label, servicesMax, 1),
      "Services whose requests it is for. Left out: all requests of all proxies.",
    ),
    match: row(
      list(map(textMatchForm), textMatchesMax),
      "Headers that a request must have, all of them.",
    ),
    when: row(
      text({ charsMax: 16 * conditionCharsMax }),
      "A CEL condition over the request, evaluated by Envoy. Left out: all.",
    ),
    bucket: row(
      list(any(words(...quotaPartWords), map(part)), quotaPartsMax, 1),
      "What is counted together: in this order a descriptor of the domain.",
    ),
    rate: row(map(rate), "Its limit. Left out: the limits of the domain that its buckets meet."),
    classes: row(map(classes), "Who gets more than others. Left out: all the same."),
    callsShare: row(
      number(callsShareBounds),
      "The part of the rate that is kept for RLS calls while the limit is half used; " +
        "usually none where `rate` is given.",
      defaultQuota.callsShareRatio,
    ),
    ttl: row(
      duration(quotaTtlBounds),
      "How long an assignment holds, in whole seconds.",
      written(defaultQuota.ttlSeconds * 1_000),
    ),
    beforeAssignment: row(
      words(...quotaBlankets),
      "What an Envoy does with a new bucket's requests until it is told.",
      defaultQuota.beforeAssignment,
    ),
    afterExpiry: row(map(expiry), "What it does when an assignment is over and no other came."),
    deny: row(map(denial), "What a caller gets whose request is over the quota."),
  },
);
