import type { DescService } from "@bufbuild/protobuf";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import { RateLimitService } from "../../gen/envoy/service/ratelimit/v3/rls_pb.js";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import type {
  BidiAnswers,
  BidiHandler,
  BidiReader,
  ServiceHandlers,
} from "../../wire/grpc/service.js";
import { ReflectionIndex } from "./reflection-index.js";
import {
  decodeReflectionRequest,
  encodeReflectionAnswer,
  type ReflectionAnswer,
  type ReflectionQuestion,
  reflectionRequestBytesMax,
} from "./reflection-messages.js";
import { GrpcFailure } from "./status.js";

/** What can be described; of it, what is served is. */
const describable: readonly DescService[] = [RateLimitService, Health];

/** The most reflection streams open at once; one more is answered RESOURCE_EXHAUSTED. */
export const reflectionStreamsMax = 64;

/**
 * gRPC reflection (v1 and v1alpha) for services that are served, so that grpcurl and its kin need
 * no files. Off unless asked for: it tells everybody on the port what there is.
 *
 * Source: gRPC, "Server Reflection Protocol"; grpc/reflection/v1/reflection.proto.
 */
export function createReflectionServices(
  served: readonly ServiceHandlers[],
): readonly ServiceHandlers[] {
  const names = new Set(served.map(({ name }) => name));
  const index = new ReflectionIndex(describable.filter(({ typeName }) => names.has(typeName)));
  const streams = { count: 0 };
  const open: BidiHandler = (_call, answers) => {
    if (streams.count >= reflectionStreamsMax) {
      throw new GrpcFailure(grpcStatuses.resourceExhausted, "Too many reflection streams.");
    }
    streams.count += 1;
    return new ReflectionStream(index, answers, () => {
      streams.count -= 1;
    });
  };
  const bytesMax = reflectionRequestBytesMax;
  return ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"].map(
    (name) => ({ name, methods: [{ kind: "bidi", name: "ServerReflectionInfo", bytesMax, open }] }),
  );
}

/** One client's stream: each question is answered before the next is read. */
class ReflectionStream implements BidiReader {
  readonly #index: ReflectionIndex;
  readonly #answers: BidiAnswers;
  readonly #onOver: () => void;
  /** An answer waits for a client that does not read, and with it what the client asks next. */
  #isWaiting = false;
  #isOver = false;

  constructor(index: ReflectionIndex, answers: BidiAnswers, onOver: () => void) {
    this.#index = index;
    this.#answers = answers;
    this.#onOver = onOver;
  }

  onMessage(bytes: Uint8Array): void {
    let answer: Uint8Array;
    try {
      const request = decodeReflectionRequest(bytes);
      answer = encodeReflectionAnswer(request, answerTo(request.question, this.#index));
    } catch (thrown) {
      this.#end(() => this.#answers.fail(thrown));
      return;
    }
    this.#isWaiting = !this.#answers.send(answer);
    if (!this.#isWaiting) this.#answers.next();
  }

  onEnd(): void {
    this.#end(() => this.#answers.end());
  }

  onCancel(): void {
    this.#end(() => this.#answers.end());
  }

  onDrain(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#answers.next();
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
    tell();
  }
}

function answerTo(question: ReflectionQuestion, index: ReflectionIndex): ReflectionAnswer {
  switch (question.kind) {
    case "services":
      return { kind: "services", names: index.serviceNames };
    case "file":
      return filesOr("No file of that name.", index.byFileName(question.name));
    case "symbol":
      return filesOr("No symbol of that name.", index.bySymbol(question.name));
    case "extension": {
      const { typeName, number } = question;
      return filesOr("No such extension.", index.byExtension(typeName, number));
    }
    case "extensionNumbers": {
      const { typeName } = question;
      const numbers = index.extensionNumbers(typeName);
      if (numbers === undefined) return notFound("No type of that name.");
      return { kind: "extensionNumbers", typeName, numbers };
    }
    case "none": {
      const message = "The request asks nothing that is known.";
      return { kind: "error", grpcStatus: grpcStatuses.invalidArgument, message };
    }
  }
}

function filesOr(message: string, files: readonly Uint8Array[] | undefined): ReflectionAnswer {
  return files === undefined ? notFound(message) : { kind: "files", files };
}

/** Names stay out of it: they are the caller's. */
function notFound(message: string): ReflectionAnswer {
  return { kind: "error", grpcStatus: grpcStatuses.notFound, message };
}
