import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { type PolicyCase, policyPlaces } from "./generated.js";

const statusShape = z.union([z.int(), z.array(z.int())]);

/** What comes back. A header's text is a regular expression of all of it; `null`: none. */
const answerShape = z.strictObject({
  status: statusShape.optional(),
  headers: z.record(z.string(), z.string().nullable()).default({}),
  body: z.string().optional(),
  /** Of requests at once: how many got which status. */
  counts: z.record(z.string(), z.int()).optional(),
});

const placeShape = z.enum(policyPlaces);

const requestShape = z
  .strictObject({
    what: z.string(),
    /** Services; each of them is asked. */
    to: z.union([z.string().transform((one) => [one]), z.array(z.string())]),
    /** Others than the first of the service. */
    hosts: z.array(z.string()).optional(),
    /** One of `callers.json`, or `forger`; absent: nobody. */
    as: z.string().optional(),
    paths: z.array(z.string()).optional(),
    ask: z
      .strictObject({
        path: z.string().default("/"),
        method: z.string().default("GET"),
        headers: z.record(z.string(), z.string()).default({}),
      })
      .prefault({}),
    /** In turn. Default 1. */
    times: z.int().default(1),
    /** Instead: so many while none of them is answered by a service. */
    atOnce: z.int().optional(),
    /** Again and again until it is so. */
    eventually: z.boolean().default(false),
    gets: answerShape,
    /** What is otherwise at a place, and why; without another answer it is not asked there. */
    unlike: z
      .partialRecord(
        placeShape,
        z.strictObject({ because: z.string(), gets: answerShape.optional() }),
      )
      .default({}),
  })
  .readonly();

/** A request to a policy's services, or several alike, and what they get. */
export type PolicyRequest = z.infer<typeof requestShape>;

/** What a request gets. */
export type PolicyAnswer = z.infer<typeof answerShape>;

/** What is asked of a policy at a place, in order; what is otherwise there is said already. */
export function policyRequests({ folder, place }: PolicyCase): readonly PolicyRequest[] {
  const text = readFileSync(join(folder, "..", "requests.yaml"), "utf8");
  return z
    .array(requestShape)
    .parse(parse(text))
    .flatMap((request) => {
      const unlike = request.unlike[place];
      if (unlike === undefined) return [request];
      return unlike.gets === undefined ? [] : [{ ...request, gets: unlike.gets }];
    });
}
