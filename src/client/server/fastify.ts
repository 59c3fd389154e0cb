import type { FastifyInstance } from "fastify";
import { createHttpAdmitter, sendRefusal } from "./node-http.js";
import type { RequestPermit } from "./request-permit.js";
import type { ServerAdmission } from "./server-admission.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The permit of the request: its class, the time left, and whether to degrade the answer. */
    admission: RequestPermit;
  }
}

/** Options of the plugin. */
export interface FastifyAdmissionOptions {
  readonly admission: ServerAdmission;
}

function plugin(
  fastify: FastifyInstance,
  { admission }: FastifyAdmissionOptions,
  done: () => void,
): void {
  const admit = createHttpAdmitter(admission);
  fastify.decorateRequest("admission");
  fastify.addHook("onRequest", (request, reply, next) => {
    admit(request.raw, reply.raw, {
      admitted: (permit) => {
        request.admission = permit;
        next();
      },
      refused: (refusal) => {
        // Fastify's serializers would change the body, so the answer is written directly, which
        // requires `hijack`. Hooks before this one may have set headers.
        reply.hijack();
        for (const [name, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(name, value);
        }
        sendRefusal(reply.raw, refusal);
      },
    });
  });
  done();
}

/**
 * A Fastify plugin: `await fastify.register(fastifyAdmission, { admission })`. It applies to all
 * routes of the instance that it is registered at. Their requests have `request.admission`.
 */
export const fastifyAdmission = Object.assign(plugin, {
  // As the package fastify-plugin marks plugins that apply to the instance itself.
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "headgate-admission",
});
