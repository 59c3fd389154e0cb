import { Server, ServerCredentials } from "@grpc/grpc-js";

/**
 * The floor: @grpc/grpc-js answering every ShouldRateLimit call with the same bytes and doing
 * nothing else. Prints its port once it listens; ends on SIGTERM.
 */
const allowed = Buffer.from([0x08, 0x01]);
const identity = (bytes: Buffer): Buffer => bytes;

const server = new Server({ "grpc.max_concurrent_streams": 1_000 });
server.addService(
  {
    ShouldRateLimit: {
      path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
      requestStream: false,
      responseStream: false,
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    },
  },
  {
    ShouldRateLimit: (_call: unknown, answer: (e: null, r: Buffer) => void) =>
      answer(null, allowed),
  },
);
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.stdout.write(`${port}\n`);
});
process.on("SIGTERM", () => server.forceShutdown());
