import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import type { BidiAnswers, BidiReader } from "../../src/wire/service.js";
import { listenOnLane } from "./lane-listener.js";

/** Our own transport answering each message of an exchange with nothing to change. */
class Exchange implements BidiReader {
  readonly #answers: BidiAnswers;

  constructor(answers: BidiAnswers) {
    this.#answers = answers;
  }

  onMessage(bytes: Uint8Array): void {
    const { request } = fromBinary(ProcessingRequestSchema, bytes);
    const { case: kind } = request;
    if (kind !== "requestHeaders" && kind !== "responseHeaders") throw new Error(`sent: ${kind}`);
    const answer = create(ProcessingResponseSchema, { response: { case: kind, value: {} } });
    this.#answers.send(toBinary(ProcessingResponseSchema, answer));
    this.#answers.next();
  }

  onEnd(): void {
    this.#answers.end();
  }

  onCancel(): void {
    this.#answers.end();
  }

  onDrain(): void {
    // An exchange has two small answers.
  }
}

listenOnLane([
  {
    name: "envoy.service.ext_proc.v3.ExternalProcessor",
    methods: [{ kind: "bidi", name: "Process", open: (_call, answers) => new Exchange(answers) }],
  },
]);
