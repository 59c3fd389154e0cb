import { listenNatively } from "./native-listener.js";

/** Our own transport answering every ShouldRateLimit call with the same bytes. */
const allowed = Buffer.from([0x08, 0x01]);

listenNatively([
  {
    name: "envoy.service.ratelimit.v3.RateLimitService",
    methods: [
      {
        kind: "unary",
        name: "ShouldRateLimit",
        handle: (_request, _call, answer) => answer.reply(allowed),
      },
    ],
  },
]);
