import type { FastifyInstance } from "fastify";
import { createHttpAdmitter, sendRefusal } from "./node-http.js";
import type { RequestPermit } from "./request-permit.js";
import type { ServerAdmission } from "./server-admission.js";

declare module "fastify" {
  interface FastifyRequest {
    /** The permit of the request: its class, its time, and whether to degrade the answer. */
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
        // Its serializers would change the body: whoever answers by hand says so. Hooks before this
        // one may have set headers.
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
 * A plugin of Fastify: `await fastify.register(fastifyAdmission, { admission })`. It holds for all
 * routes of the instance that it is registered at; their requests have `request.admission`.
 */
export const fastifyAdmission = Object.assign(plugin, {
  // As the package fastify-plugin marks what belongs to the instance itself.
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "headgate-admission",
});
