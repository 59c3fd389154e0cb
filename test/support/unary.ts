import type { CallContext, UnaryHandler } from "../../src/wire/grpc/service.js";

/** A handler that answers when the promise does. */
export function unaryHandler(
  answer: (request: Uint8Array, call: CallContext) => Promise<Uint8Array>,
): UnaryHandler {
  return (request, call, to) => {
    answer(request, call).then(
      (bytes) => to.reply(bytes),
      (thrown: unknown) => to.fail(thrown),
    );
  };
}

/** A handler's answer to one call; a second one fails the test that made the call. */
export function answerOf(
  handle: UnaryHandler,
  request: Uint8Array,
  call: CallContext,
): Promise<Uint8Array> {
  let isAnswered = false;
  const once = (answer: () => void): void => {
    if (isAnswered) throw new Error("A call was answered twice.");
    isAnswered = true;
    answer();
  };
  return new Promise((resolve, reject) => {
    handle(request, call, {
      reply: (bytes) => once(() => resolve(bytes)),
      fail: (thrown) => once(() => reject(thrown)),
    });
  });
}
